// Reads a JSON list of WGSL shaders and prints, for each, what Tint says against it (an empty list if nothing).
// Tint is in the npm package `webgpu` (Dawn); its null backend needs no driver.
import fs from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const place = createRequire(pathToFileURL(process.argv[2] + '/'));
const { create, globals } = await import(pathToFileURL(place.resolve('webgpu')).href);
Object.assign(globalThis, globals);
const gpu = create(['backend=null']); // kept: collected early, it takes the process down
const adapter = await gpu.requestAdapter();
const wanted = [...adapter.features].filter((f) => f === 'subgroups');
const device = await adapter.requestDevice({ requiredFeatures: wanted });
const said = [];
for (const code of JSON.parse(fs.readFileSync(0, 'utf8'))) {
  device.pushErrorScope('validation');
  const info = await device.createShaderModule({ code }).getCompilationInfo();
  await device.popErrorScope();
  const errors = info.messages.filter((m) => m.type === 'error');
  said.push(errors.map((m) => `:${m.lineNum}:${m.linePos} error: ${m.message}`));
}
console.log(JSON.stringify(said));
process.exit(0);
