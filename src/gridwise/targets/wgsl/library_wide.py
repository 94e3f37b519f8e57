"""WGSL functions on 64-bit integers held as pairs of words, low word first."""

WIDE = """
fn gw_add64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let low = a.x + b.x;
    return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}

fn gw_sub64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    return vec2<u32>(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x));
}

fn gw_neg64(a: vec2<u32>) -> vec2<u32> {
    return gw_sub64(vec2<u32>(0u, 0u), a);
}

// The full product of two words.
fn gw_mul32(a: u32, b: u32) -> vec2<u32> {
    let ll = (a & 0xffffu) * (b & 0xffffu);
    let lh = (a & 0xffffu) * (b >> 16u);
    let hl = (a >> 16u) * (b & 0xffffu);
    let middle = (ll >> 16u) + (lh & 0xffffu) + (hl & 0xffffu);
    return vec2<u32>(a * b, (a >> 16u) * (b >> 16u) + (lh >> 16u) + (hl >> 16u) + (middle >> 16u));
}

fn gw_mul64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let low = gw_mul32(a.x, b.x);
    return vec2<u32>(low.x, low.y + a.x * b.y + a.y * b.x);
}

fn gw_lt_u64(a: vec2<u32>, b: vec2<u32>) -> bool {
    return (a.y < b.y) || (a.y == b.y && a.x < b.x);
}

fn gw_lt_i64(a: vec2<u32>, b: vec2<u32>) -> bool {
    return (bitcast<i32>(a.y) < bitcast<i32>(b.y)) || (a.y == b.y && a.x < b.x);
}

// A 64-bit shift count as a word: 64 stands for everything beyond.
fn gw_count64(n: vec2<u32>) -> u32 {
    return select(min(n.x, 64u), 64u, n.y != 0u);
}

fn gw_shl64(a: vec2<u32>, n: u32) -> vec2<u32> {
    if (n == 0u) { return a; }
    if (n > 63u) { return vec2<u32>(0u, 0u); }
    if (n > 31u) { return vec2<u32>(0u, a.x << (n - 32u)); }
    return vec2<u32>(a.x << n, (a.y << n) | (a.x >> (32u - n)));
}

fn gw_shr_u64(a: vec2<u32>, n: u32) -> vec2<u32> {
    if (n == 0u) { return a; }
    if (n > 63u) { return vec2<u32>(0u, 0u); }
    if (n > 31u) { return vec2<u32>(a.y >> (n - 32u), 0u); }
    return vec2<u32>((a.x >> n) | (a.y << (32u - n)), a.y >> n);
}

fn gw_shr_i64(a: vec2<u32>, n: u32) -> vec2<u32> {
    let sign = bitcast<u32>(bitcast<i32>(a.y) >> 31u);
    if (n == 0u) { return a; }
    if (n > 63u) { return vec2<u32>(sign, sign); }
    if (n > 31u) { return vec2<u32>(bitcast<u32>(bitcast<i32>(a.y) >> (n - 32u)), sign); }
    return vec2<u32>((a.x >> n) | (a.y << (32u - n)), bitcast<u32>(bitcast<i32>(a.y) >> n));
}

// A right shift whose lowest bit also stands for the bits shifted out.
fn gw_jam64(a: vec2<u32>, n: u32) -> vec2<u32> {
    let s = gw_shr_u64(a, n);
    let back = gw_shl64(s, n);
    return vec2<u32>(s.x | select(0u, 1u, any(back != a)), s.y);
}

fn gw_clz64(a: vec2<u32>) -> u32 {
    return select(countLeadingZeros(a.y), 32u + countLeadingZeros(a.x), a.y == 0u);
}

fn gw_ctz64(a: vec2<u32>) -> u32 {
    return select(countTrailingZeros(a.x), 32u + countTrailingZeros(a.y), a.x == 0u);
}

// Quotient and remainder (low words first) by shift and subtract, for a divisor that is not 0.
fn gw_divmod_u64(a: vec2<u32>, b: vec2<u32>) -> vec4<u32> {
    if ((a.y | b.y) == 0u) { return vec4<u32>(a.x / b.x, 0u, a.x % b.x, 0u); }
    if (gw_lt_u64(a, b)) { return vec4<u32>(0u, 0u, a.x, a.y); }
    var n = gw_clz64(b) - gw_clz64(a);
    var d = gw_shl64(b, n);
    var r = a;
    var q = vec2<u32>(0u, 0u);
    loop {
        q = vec2<u32>(q.x << 1u, (q.y << 1u) | (q.x >> 31u));
        if (!gw_lt_u64(r, d)) {
            r = gw_sub64(r, d);
            q.x |= 1u;
        }
        if (n == 0u) { break; }
        n -= 1u;
        d = vec2<u32>((d.x >> 1u) | (d.y << 31u), d.y >> 1u);
    }
    return vec4<u32>(q, r);
}

fn gw_abs64(a: vec2<u32>) -> vec2<u32> {
    return select(a, gw_neg64(a), (a.y >> 31u) == 1u);
}

fn gw_floordiv_u64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    return gw_divmod_u64(a, b).xy;
}

fn gw_mod_u64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    return gw_divmod_u64(a, b).zw;
}

fn gw_floordiv_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let qr = gw_divmod_u64(gw_abs64(a), gw_abs64(b));
    if (((a.y ^ b.y) >> 31u) == 0u) { return qr.xy; }
    let q = gw_neg64(qr.xy);
    return select(q, gw_sub64(q, vec2<u32>(1u, 0u)), (qr.z | qr.w) != 0u);
}

fn gw_mod_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let r = gw_divmod_u64(gw_abs64(a), gw_abs64(b)).zw;
    let s = select(r, gw_neg64(r), (a.y >> 31u) == 1u);
    return select(s, gw_add64(s, b), ((r.x | r.y) != 0u) && (((a.y ^ b.y) >> 31u) == 1u));
}

// The number of steps of range(start, stop, step).
fn gw_trips_u64(start: vec2<u32>, stop: vec2<u32>, step: vec2<u32>) -> vec2<u32> {
    if (!gw_lt_u64(start, stop)) { return vec2<u32>(0u, 0u); }
    let span = gw_sub64(gw_sub64(stop, start), vec2<u32>(1u, 0u));
    return gw_add64(gw_floordiv_u64(span, step), vec2<u32>(1u, 0u));
}

fn gw_trips_i64(start: vec2<u32>, stop: vec2<u32>, step: vec2<u32>) -> vec2<u32> {
    let down = (step.y >> 31u) == 1u;
    let a = select(start, stop, down);
    let b = select(stop, start, down);
    if (!gw_lt_i64(a, b)) { return vec2<u32>(0u, 0u); }
    let span = gw_sub64(gw_sub64(b, a), vec2<u32>(1u, 0u));
    return gw_add64(gw_floordiv_u64(span, gw_abs64(step)), vec2<u32>(1u, 0u));
}

// To f32, nearest even: both halves are exact, and their sum is rounded once. (SwiftShader's own is not exact.)
// Hidden, so that no driver adds a later term to one of the halves first.
fn gw_f32_u32(a: u32) -> f32 {
    return gw_exact(f32(a >> 16u) * 65536.0f + f32(a & 0xffffu));
}

// To f32, nearest even: the top 32 bits decide, with one bit for the rest.
fn gw_f32_u64(a: vec2<u32>) -> f32 {
    if (a.y == 0u) { return gw_f32_u32(a.x); }
    let n = countLeadingZeros(a.y);
    let s = gw_shl64(a, n);
    return gw_f32_u32(s.y | select(0u, 1u, s.x != 0u)) * bitcast<f32>((159u - n) << 23u);
}

fn gw_f32_i64(a: vec2<u32>) -> f32 {
    let m = gw_f32_u64(gw_abs64(a));
    return select(m, -m, (a.y >> 31u) == 1u);
}

// To f32 with the lowest bit standing for what is cut off, so that a second rounding is right.
fn gw_odd_u64(a: vec2<u32>) -> f32 {
    let n = gw_clz64(a);
    let s = gw_shl64(a, n);
    let t = (s.y & 0xffffff00u) | select(0u, 0x100u, ((s.y & 0xffu) | s.x) != 0u);
    return gw_f32_u32(t) * bitcast<f32>((159u - min(n, 63u)) << 23u);
}

fn gw_odd_i64(a: vec2<u32>) -> f32 {
    let m = gw_odd_u64(gw_abs64(a));
    return select(m, -m, (a.y >> 31u) == 1u);
}

// Toward zero, saturating; NaN gives 0.
fn gw_u64_f32(x: f32) -> vec2<u32> {
    let b = bitcast<u32>(x);
    let e = (b >> 23u) & 0xffu;
    if (e < 127u || (b & 0x7fffffffu) > 0x7f800000u || (b >> 31u) == 1u) { return vec2<u32>(0u, 0u); }
    if (e >= 191u) { return vec2<u32>(0xffffffffu, 0xffffffffu); }
    let m = vec2<u32>((b & 0x7fffffu) | 0x800000u, 0u);
    if (e >= 150u) { return gw_shl64(m, e - 150u); }
    return gw_shr_u64(m, 150u - e);
}

fn gw_i64_f32(x: f32) -> vec2<u32> {
    let m = gw_u64_f32(bitcast<f32>(bitcast<u32>(x) & 0x7fffffffu));
    let negative = (bitcast<u32>(x) >> 31u) == 1u;
    let most = select(vec2<u32>(0xffffffffu, 0x7fffffffu), vec2<u32>(0u, 0x80000000u), negative);
    if (m.y >= 0x80000000u) { return most; }
    if (negative) { return gw_neg64(m); }
    return m;
}

// Pairs as the native types that 64-bit atomics have, and back.
fn gw_u64(a: vec2<u32>) -> u64 {
    return u64(a.x) | (u64(a.y) << 32u);
}

fn gw_i64(a: vec2<u32>) -> i64 {
    return bitcast<i64>(gw_u64(a));
}

fn gw_pair_u64(a: u64) -> vec2<u32> {
    return vec2<u32>(u32(a), u32(a >> 32u));
}

fn gw_pair_i64(a: i64) -> vec2<u32> {
    return gw_pair_u64(bitcast<u64>(a));
}
"""
