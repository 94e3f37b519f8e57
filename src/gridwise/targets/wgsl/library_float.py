"""WGSL functions on floats: order, conversions, the small formats, and correctly rounded division, sqrt and fma.

Everything works on bit patterns, because drivers may assume that no NaN, infinity or signed zero occurs.
"""

FLOAT = """
fn gw_isnan_f32(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}

// A value as it is, whatever the driver would like to simplify. (Not by xor: two of those would cancel.)
fn gw_exact(x: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(x) | args.zero);
}

// An integer that orders floats as their values do, -0.0 below 0.0.
fn gw_order_f32(x: f32) -> i32 {
    let b = bitcast<i32>(x);
    return b ^ ((b >> 31u) & 0x7fffffffi);
}

// NaN if either is.
fn gw_min_f32(a: f32, b: f32) -> f32 {
    if (gw_isnan_f32(a)) { return a; }
    return select(a, b, gw_isnan_f32(b) || (gw_order_f32(b) < gw_order_f32(a)));
}

fn gw_max_f32(a: f32, b: f32) -> f32 {
    if (gw_isnan_f32(a)) { return a; }
    return select(a, b, gw_isnan_f32(b) || (gw_order_f32(b) > gw_order_f32(a)));
}

// A NaN is ignored if the other is a number.
fn gw_fmin_f32(a: f32, b: f32) -> f32 {
    if (gw_isnan_f32(a)) { return b; }
    return select(a, b, !gw_isnan_f32(b) && (gw_order_f32(b) < gw_order_f32(a)));
}

fn gw_fmax_f32(a: f32, b: f32) -> f32 {
    if (gw_isnan_f32(a)) { return b; }
    return select(a, b, !gw_isnan_f32(b) && (gw_order_f32(b) > gw_order_f32(a)));
}

// Toward zero, saturating; NaN gives 0.
fn gw_i32_f32(x: f32) -> i32 {
    let b = bitcast<u32>(x);
    let e = (b >> 23u) & 0xffu;
    if (e < 127u || (b & 0x7fffffffu) > 0x7f800000u) { return 0i; }
    if (e >= 158u) { return select(0x7fffffffi, i32(-2147483648), (b >> 31u) == 1u); }
    let m = (b & 0x7fffffu) | 0x800000u;
    let n = select(m >> (150u - min(e, 150u)), m << (max(e, 150u) - 150u), e > 150u);
    return select(bitcast<i32>(n), -bitcast<i32>(n), (b >> 31u) == 1u);
}

fn gw_u32_f32(x: f32) -> u32 {
    let b = bitcast<u32>(x);
    let e = (b >> 23u) & 0xffu;
    if (e < 127u || (b & 0x7fffffffu) > 0x7f800000u || (b >> 31u) == 1u) { return 0u; }
    if (e >= 159u) { return 0xffffffffu; }
    let m = (b & 0x7fffffu) | 0x800000u;
    return select(m >> (150u - min(e, 150u)), m << (max(e, 150u) - 150u), e > 150u);
}

// The bits of a small float: nearest even. `m` mantissa bits, exponent bias, largest finite, what is beyond, NaN.
fn gw_narrow(x: f32, m: u32, bias: u32, top: u32, beyond: u32, nan: u32) -> u32 {
    let b = bitcast<u32>(x) & 0x7fffffffu;
    if (b > 0x7f800000u) { return nan; }
    let e = b >> 23u;
    var s = 23u - m;
    var q = 0u;
    if (e + bias < 128u) {
        s += 128u - bias - e;
        if (s > 25u || e == 0u) { return 0u; }
        let f = (b & 0x7fffffu) | 0x800000u;
        q = (f + (1u << (s - 1u)) - 1u + ((f >> s) & 1u)) >> s;
    } else {
        q = ((b + (1u << (s - 1u)) - 1u + ((b >> s) & 1u)) >> s) - ((127u - bias) << m);
    }
    return select(q, beyond, q > top);
}

fn gw_f16_bits(x: f32) -> u32 {
    let b = bitcast<u32>(x);
    let payload = (b >> 13u) & 0x3ffu;
    let nan = 0x7c00u | select(payload, 0x200u, payload == 0u);
    return gw_narrow(x, 10u, 15u, 0x7bffu, 0x7c00u, nan) | ((b >> 16u) & 0x8000u);
}

fn gw_f16_value(h: u32) -> f32 {
    let sign = (h & 0x8000u) << 16u;
    let m = h & 0x7fffu;
    if (m >= 0x7c00u) { return bitcast<f32>(sign | 0x7f800000u | ((m & 0x3ffu) << 13u)); }
    if (m < 0x400u) { return bitcast<f32>(sign | bitcast<u32>(f32(m) * 5.9604644775390625e-8f)); }
    return bitcast<f32>(sign | ((m << 13u) + 0x38000000u));
}

fn gw_f16_round(x: f32) -> f32 {
    return gw_f16_value(gw_f16_bits(x));
}

fn gw_bf16_bits(x: f32) -> u32 {
    let b = bitcast<u32>(x);
    if (gw_isnan_f32(x)) { return (b >> 16u) | select(0u, 0x40u, (b & 0x7f0000u) == 0u); }
    return (b + 0x7fffu + ((b >> 16u) & 1u)) >> 16u;
}

fn gw_bf16_value(h: u32) -> f32 {
    return bitcast<f32>(h << 16u);
}

fn gw_bf16_round(x: f32) -> f32 {
    return gw_bf16_value(gw_bf16_bits(x));
}

fn gw_f8e4m3_bits(x: f32) -> u32 {
    return gw_narrow(x, 3u, 7u, 0x7eu, 0x7fu, 0x7fu) | ((bitcast<u32>(x) >> 24u) & 0x80u);
}

fn gw_f8e4m3_value(h: u32) -> f32 {
    let sign = (h & 0x80u) << 24u;
    let m = h & 0x7fu;
    if (m == 0x7fu) { return bitcast<f32>(sign | 0x7fc00000u | args.zero); }
    if (m < 8u) { return bitcast<f32>(sign | bitcast<u32>(f32(m) * 0.001953125f)); }
    return bitcast<f32>(sign | ((m << 20u) + 0x3c000000u));
}

fn gw_f8e5m2_bits(x: f32) -> u32 {
    return gw_narrow(x, 2u, 15u, 0x7bu, 0x7cu, 0x7eu) | ((bitcast<u32>(x) >> 24u) & 0x80u);
}

fn gw_f8e5m2_value(h: u32) -> f32 {
    return gw_f16_value(h << 8u);
}

// The float of a sign, an exponent and 32 bits `t` whose top bit is set (value t * 2^(e-31)), rounded to nearest
// even; the lowest bit of t also stands for everything cut off before.
fn gw_pack_f32(sign: u32, e: i32, t: u32) -> f32 {
    if (e > 127i) { return bitcast<f32>(sign | 0x7f800000u | args.zero); }
    var s = 8u;
    var base = 0u;
    if (e < -126i) {
        s = 8u + u32(-126i - max(e, -200i));
        if (s > 32u) { return bitcast<f32>(sign); }
        if (s == 32u) { return bitcast<f32>(sign | select(0u, 1u, t > 0x80000000u)); }
    } else {
        base = u32(e + 126i) << 23u;
    }
    let half = 1u << (s - 1u);
    let rest = t & ((half << 1u) - 1u);
    let q = t >> s;
    let up = (rest > half) || (rest == half && (q & 1u) == 1u);
    return bitcast<f32>(sign | (base + q + select(0u, 1u, up)));
}

// A finite float that is not 0 as mantissa (bit 23 set) and exponent: value x * 2^(y-23).
fn gw_split_f32(b: u32) -> vec2<u32> {
    let e = (b >> 23u) & 0xffu;
    let f = b & 0x7fffffu;
    if (e != 0u) { return vec2<u32>(f | 0x800000u, bitcast<u32>(i32(e) - 127i)); }
    let n = countLeadingZeros(f) - 8u;
    return vec2<u32>(f << n, bitcast<u32>(-126i - i32(n)));
}

// Correctly rounded division: a quotient of the driver's, corrected by its exact remainder.
fn gw_div_f32(a: f32, b: f32) -> f32 {
    let ua = bitcast<u32>(a) & 0x7fffffffu;
    let ub = bitcast<u32>(b) & 0x7fffffffu;
    let sign = (bitcast<u32>(a) ^ bitcast<u32>(b)) & 0x80000000u;
    if (ua > 0x7f800000u || ub > 0x7f800000u || (ua == ub && (ua == 0u || ua == 0x7f800000u))) {
        return bitcast<f32>(0x7fc00000u | args.zero);
    }
    if (ua == 0x7f800000u || ub == 0u) { return bitcast<f32>(sign | 0x7f800000u | args.zero); }
    if (ub == 0x7f800000u || ua == 0u) { return bitcast<f32>(sign); }
    let x = gw_split_f32(ua);
    let y = gw_split_f32(ub);
    let low = x.x < y.x;
    let m = select(x.x, x.x << 1u, low);
    let e = bitcast<i32>(x.y) - bitcast<i32>(y.y) - select(0i, 1i, low);
    var q = u32(f32(m) / f32(y.x) * 8388608.0f);
    var r = bitcast<i32>((m << 23u) - q * y.x);
    let d = bitcast<i32>(y.x);
    while (r < 0i) { q -= 1u; r += d; }
    while (r >= d) { q += 1u; r -= d; }
    let twice = 2i * r;
    let tail = select(0u, 0x80u, twice >= d) | select(0u, 1u, twice != d && r != 0i);
    return gw_pack_f32(sign, e, (q << 8u) | tail);
}

// Correctly rounded square root, in the same way.
fn gw_sqrt_f32(x: f32) -> f32 {
    let b = bitcast<u32>(x);
    if ((b & 0x7fffffffu) == 0u || b == 0x7f800000u) { return x; }
    if (b > 0x7f800000u) { return bitcast<f32>(0x7fc00000u | args.zero); }
    let v = gw_split_f32(b);
    let e = bitcast<i32>(v.y);
    let odd = (e & 1i) != 0i;
    let m = select(v.x, v.x << 1u, odd);
    var s = u32(sqrt(f32(m) * 1.1920928955078125e-7f) * 8388608.0f);
    var r = bitcast<i32>((m << 23u) - s * s);
    while (r < 0i) { s -= 1u; r += 2i * bitcast<i32>(s) + 1i; }
    while (r > 2i * bitcast<i32>(s)) { r -= 2i * bitcast<i32>(s) + 1i; s += 1u; }
    let tail = select(0u, 0x80u, r > bitcast<i32>(s)) | select(0u, 1u, r != 0i);
    return gw_pack_f32(0u, e >> 1u, (s << 8u) | tail);
}

// a * b + c with one rounding.
fn gw_fma_f32(a: f32, b: f32, c: f32) -> f32 {
    let ua = bitcast<u32>(a) & 0x7fffffffu;
    let ub = bitcast<u32>(b) & 0x7fffffffu;
    let uc = bitcast<u32>(c) & 0x7fffffffu;
    let negative = (bitcast<u32>(a) ^ bitcast<u32>(b)) & 0x80000000u;
    if (ua > 0x7f800000u || ub > 0x7f800000u || uc > 0x7f800000u) { return bitcast<f32>(0x7fc00000u | args.zero); }
    if (ua == 0x7f800000u || ub == 0x7f800000u) {
        let against = uc == 0x7f800000u && ((bitcast<u32>(c) ^ negative) >> 31u) == 1u;
        let invalid = ua == 0u || ub == 0u || against;
        return bitcast<f32>(select(negative | 0x7f800000u, 0x7fc00000u, invalid) | args.zero);
    }
    if (uc == 0x7f800000u) { return c; }
    if (ua == 0u || ub == 0u) {
        if (uc != 0u) { return c; }
        return bitcast<f32>(bitcast<u32>(c) & negative);
    }
    let x = gw_split_f32(ua);
    let y = gw_split_f32(ub);
    var p = gw_mul32(x.x, y.x);
    let n = countLeadingZeros(p.y) - 1u;
    p = gw_shl64(p, n);
    var e = bitcast<i32>(x.y) + bitcast<i32>(y.y) + 17i - i32(n);
    var sign = negative;
    if (uc != 0u) {
        let z = gw_split_f32(uc);
        let f = bitcast<i32>(z.y) + 1i;
        var q = gw_shl64(vec2<u32>(z.x, 0u), 39u);
        if (e >= f) {
            q = gw_jam64(q, u32(e - f));
        } else {
            p = gw_jam64(p, u32(f - e));
            e = f;
        }
        let sign_c = bitcast<u32>(c) & 0x80000000u;
        if (sign_c == sign) {
            p = gw_add64(p, q);
        } else if (gw_lt_u64(p, q)) {
            p = gw_sub64(q, p);
            sign = sign_c;
        } else {
            p = gw_sub64(p, q);
            if ((p.x | p.y) == 0u) { return 0.0f; }
        }
    }
    let m = gw_clz64(p);
    p = gw_shl64(p, m);
    return gw_pack_f32(sign, e - i32(m), p.y | select(0u, 1u, p.x != 0u));
}

fn gw_bits_f64(x: f64) -> vec2<u32> {
    let b = bitcast<u64>(x);
    return vec2<u32>(u32(b), u32(b >> 32u));
}

fn gw_f64(b: vec2<u32>) -> f64 {
    return bitcast<f64>(u64(b.x) | (u64(b.y) << 32u));
}

fn gw_isnan_f64(x: f64) -> bool {
    let b = gw_bits_f64(x);
    let high = b.y & 0x7fffffffu;
    return (high > 0x7ff00000u) || (high == 0x7ff00000u && b.x != 0u);
}

fn gw_exact_f64(x: f64) -> f64 {
    return gw_f64(gw_bits_f64(x) | vec2<u32>(args.zero, args.zero));
}

// A 64-bit integer that orders doubles as their values do.
fn gw_order_f64(x: f64) -> vec2<u32> {
    let b = gw_bits_f64(x);
    if ((b.y >> 31u) == 1u) { return b ^ vec2<u32>(0xffffffffu, 0x7fffffffu); }
    return b;
}

fn gw_min_f64(a: f64, b: f64) -> f64 {
    if (gw_isnan_f64(a)) { return a; }
    if (gw_isnan_f64(b) || gw_lt_i64(gw_order_f64(b), gw_order_f64(a))) { return b; }
    return a;
}

fn gw_max_f64(a: f64, b: f64) -> f64 {
    if (gw_isnan_f64(a)) { return a; }
    if (gw_isnan_f64(b) || gw_lt_i64(gw_order_f64(a), gw_order_f64(b))) { return b; }
    return a;
}

fn gw_fmin_f64(a: f64, b: f64) -> f64 {
    if (gw_isnan_f64(a)) { return b; }
    if (!gw_isnan_f64(b) && gw_lt_i64(gw_order_f64(b), gw_order_f64(a))) { return b; }
    return a;
}

fn gw_fmax_f64(a: f64, b: f64) -> f64 {
    if (gw_isnan_f64(a)) { return b; }
    if (!gw_isnan_f64(b) && gw_lt_i64(gw_order_f64(a), gw_order_f64(b))) { return b; }
    return a;
}

// Toward zero, saturating; NaN gives 0.
fn gw_u64_f64(x: f64) -> vec2<u32> {
    let b = gw_bits_f64(x);
    let e = (b.y >> 20u) & 0x7ffu;
    if (gw_isnan_f64(x) || e < 1023u || (b.y >> 31u) == 1u) { return vec2<u32>(0u, 0u); }
    if (e >= 1087u) { return vec2<u32>(0xffffffffu, 0xffffffffu); }
    let m = vec2<u32>(b.x, (b.y & 0xfffffu) | 0x100000u);
    if (e >= 1075u) { return gw_shl64(m, e - 1075u); }
    return gw_shr_u64(m, 1075u - e);
}

fn gw_i64_f64(x: f64) -> vec2<u32> {
    let m = gw_u64_f64(abs(x));
    let negative = (gw_bits_f64(x).y >> 31u) == 1u;
    let most = select(vec2<u32>(0xffffffffu, 0x7fffffffu), vec2<u32>(0u, 0x80000000u), negative);
    if (m.y >= 0x80000000u) { return most; }
    if (negative) { return gw_neg64(m); }
    return m;
}

fn gw_f64_u64(x: vec2<u32>) -> f64 {
    return f64(x.y) * 4294967296.0lf + f64(x.x);
}

fn gw_f64_i64(x: vec2<u32>) -> f64 {
    return f64(bitcast<i32>(x.y)) * 4294967296.0lf + f64(x.x);
}

// To f32 with the lowest bit standing for what is cut off, so that a second rounding is right.
fn gw_odd_f64(x: f64) -> f32 {
    let b = gw_bits_f64(x);
    let sign = b.y & 0x80000000u;
    if (gw_isnan_f64(x)) { return bitcast<f32>(0x7fc00000u | args.zero); }
    let e = i32((b.y >> 20u) & 0x7ffu) - 1023i;
    if (e > 127i) { return bitcast<f32>(sign | select(0x7f7fffffu, 0x7f800000u, e == 1024i) | args.zero); }
    let m = ((b.y & 0xfffffu) << 3u) | (b.x >> 29u);
    if (e < -126i) {
        if ((b.x | (b.y & 0x7fffffffu)) == 0u) { return bitcast<f32>(sign); }
        let s = u32(min(-126i - e, 31i));
        let f = m | 0x800000u;
        let cut = (f & ((1u << s) - 1u)) | (b.x & 0x1fffffffu);
        return bitcast<f32>(sign | (f >> s) | select(0u, 1u, cut != 0u));
    }
    return bitcast<f32>(sign | (u32(e + 127i) << 23u) | m | select(0u, 1u, (b.x & 0x1fffffffu) != 0u));
}
"""
