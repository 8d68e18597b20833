"""Expressions that are held against Spark, by the function they are about."""

from __future__ import annotations

_NUMBERS = ("t", "h", "i", "l", "f", "x", "d", "e", "w", "u", "b")
_CAST_SOURCES = {
    "tinyint": _NUMBERS + ("ts",),
    "smallint": _NUMBERS + ("ts",),
    "int": _NUMBERS + ("ts",),
    "bigint": _NUMBERS + ("ts",),
    "float": _NUMBERS + ("ts",),
    "double": _NUMBERS + ("ts",),
    "string": ("t", "i", "l", "f", "x", "y", "d", "e", "w", "b", "dt", "ts", "n", "z"),
    "boolean": _NUMBERS,
    "date": ("g", "ts", "n", "dt"),
    "timestamp": ("g", "dt", "n", "t", "i", "x", "d", "e"),
}


def _casts(name: str) -> list[str]:
    return [f"cast({column} as {name})" for column in _CAST_SOURCES[name]]


def _binary(sign: str, pairs: str) -> list[str]:
    return [f"{left} {sign} {right}" for left, right in (pair.split(":") for pair in pairs.split())]


_PAIRS = "t:t h:h i:j l:m i:l t:l f:f x:y f:i x:l f:x d:d d:e e:e d:w w:w e:w d:i d:l d:3 d:1.5 i:2.5 d:x f:d u:i"
_PAIRS += " i:5 l:-1 3:d t:1 w:2 -7:j 0.5:w"

OPERATORS: dict[str, list[str]] = {
    "+": _binary("+", _PAIRS),
    "-": _binary("-", _PAIRS),
    "*": _binary("*", _PAIRS),
    "/": _binary("/", _PAIRS),
    "%": _binary("%", _PAIRS),
    "div": _binary("div", "t:t i:j l:m i:l d:e d:i i:3 l:-1 w:d l:0 d:0.5"),
    "bits": ["i & j", "l | i", "t ^ h", "~t", "~l", "i & 255", "l ^ -1"],
    "negative": ["-t", "-h", "-i", "-l", "-f", "-x", "-d", "-w", "-(-5)", "- u", "-2147483648", "-9223372036854775808"],
    "comparison": [
        f"{left} {sign} {right}"
        for sign in ("=", "<>", "<", "<=", ">", ">=", "<=>")
        for left, right in (
            ("i", "j"), ("l", "i"), ("x", "y"), ("f", "x"), ("d", "e"), ("d", "i"), ("e", "w"), ("w", "w"), ("d", "x"),
            ("s", "v"), ("b", "c"), ("ts", "te"), ("dt", "ts"), ("u", "i"), ("i", "null"), ("x", "'NaN'"), ("d", "1.25"),
            ("ts", "'2020-05-06 00:00:00'"), ("dt", "'2020-02-29'"), ("n", "ts"), ("z", "z"), ("w", "l"), ("`a.i`", "i"),
        )
    ],
    "distinct": ["i is distinct from j", "x is not distinct from y", "w is distinct from w"],
    "in": [
        "i in (1, 2, 3)", "i in (1)", "i in (1, null)", "i not in (1, null)", "i in (1, 2, 3, 4, 5, 6)", "x in (1, 2.5)",
        "x in (cast('NaN' as double), 0)", "s in ('a', 'abc', 'ß')", "s in ('a', 'b', 'c', 'd', 'e', null)", "d in (1, 2.5)",
        "i in (j, l)", "u in (1, 2)", "null in (1, 2)", "i in (j, 1 div i)", "b in (true)", "w in (3, d)", "l in (1, '2')",
        "dt in ('2020-02-29', '1970-01-01')", "ts in (te, null)",
    ],
    "between": ["i between 1 and 5", "i between j and l", "x not between 0 and 1", "d between 0 and 2.505", "s between 'a' and 'b'",
                "i between 0 and 5 / j", "ts between '2020-01-01' and te"],
    "and": ["b and c", "b and i > 1", "i <> 0 and 10 / i > 2", "10 / i > 2 and i <> 0", "b and c and i > 0 and 1 / j > 0",
            "b and null", "b and cast(u as boolean)", "b and 'true'"],
    "or": ["b or c", "i = 0 or 10 / i > 2", "10 / i > 2 or i = 0", "b or c or 1 / i > 0", "c or null", "b or (c and 1 / j > 0)"],
    "not": ["not b", "not (b and c)", "not i > 1", "! b", "not (i is null)"],
    "is": ["i is null", "x is not null", "b is true", "b is not true", "b is false", "1 / i is null", "(i > 1) is true",
           "b is unknown"],
    "case": [
        "case when i = 0 then 0 else 10 / i end", "case i when 0 then 'zero' when 1 then 'one' end", "case when b then i when c then l else d end",
        "case when 1 / i > 0 then 1 else 2 end", "case when b then 1 / i when c then 1 / j end", "case when b then null else i end",
        "case u when 1 then 'x' else 'y' end", "case when b then 'a' else 'b' end", "case when cast(null as boolean) then 1 else i end",
        "case when i > 0 then case when j > 0 then 1 / (i - j) else 0 end else -1 end",
    ],
    "||": ["s || v", "s || i || '!'", "s || null", "i || d || b"],
    "interval": [
        "ts + interval 1 day", "ts - interval 90 minutes", "ts + interval 1 month", "ts - interval 1 year", "dt + interval 1 day",
        "dt + interval 1 month", "dt - interval 2 hours", "dt + 3", "dt - i", "n + interval 1 day", "ts - te < interval 5 days",
        "ts > te - interval '1 02:03:04.5' day to second", "ts + interval '1-2' year to month", "ts + interval 2 weeks",
        "ts + interval 1 day 2 hours", "ts + interval '1 day 2 hours'", "interval 1 day + ts", "ts + interval 1.5 seconds",
        "dt - dt = interval 0 days", "ts + (te - ts) = te", "dt + t",
    ],
    "literal": ["1", "2147483648", "1.50", "1e3", "1.5D", "5L", "3Y", "2S", "'é'", "true", "null", "0.001", "-0.5", ".5", "9223372036854775808",
                "1.5BD", "2.5F", "date '2020-02-29'", "timestamp '2020-02-29 12:00:00.5'", r"'a\'b'", r"'a\\b\n'"],
    "field": ["`a.i` + 1", "`a.i` * 2"],
}

FUNCTIONS: dict[str, list[str]] = {
    **{name: _casts(name) for name in ("float", "double", "string", "boolean", "date", "timestamp")},
    **{name: [*_casts(name), f"{name}(x)", f"{name}(u)"] for name in ("tinyint", "smallint", "int", "bigint")},
    **{
        name: [f"{name}(x)", f"{name}(i)", f"{name}(d)", f"{name}(u)", f"{name}(null)", f"{name}(f)"]
        for name in ("sqrt", "exp", "ln", "log10", "log2", "sin", "cos", "tan", "asin", "acos", "atan", "radians", "degrees", "sign")
    },
    "log": ["log(x)", "log(2, x)", "log(x, y)", "log(i, 8)", "log(10, l)", "floor(log10(1000))"],
    "pow": ["pow(x, 2)", "pow(i, j)", "pow(x, y)", "pow(2, 0.5)"],
    "power": ["power(x, 3)", "power(-1, y)"],
    "atan2": ["atan2(x, y)", "atan2(i, j)"],
    "abs": ["abs(t)", "abs(h)", "abs(i)", "abs(l)", "abs(f)", "abs(x)", "abs(d)", "abs(w)", "abs(u)"],
    "ceil": ["ceil(x)", "ceil(f)", "ceil(i)", "ceil(d)", "ceil(e)", "ceil(w)", "ceil(u)", "ceil(l)"],
    "floor": ["floor(x)", "floor(f)", "floor(t)", "floor(d)", "floor(e)", "floor(w)"],
    "round": [
        *(f"round({column})" for column in "t h i l f x d e w u".split()),
        *(f"round({column}, {digits})" for column in "x f d e w".split() for digits in (2, 1, -1, 5)),
        "round(t, -1)", "round(i, -1)", "round(l, -3)", "round(i, 2)", "round(i, -10)", "round(l, -19)", "round(2.675D, 2)", "round(y, -2)", "round(w, -28)",
    ],
    "mod": ["mod(i, j)", "mod(x, y)", "mod(d, e)", "mod(t, 3)", "mod(f, f)", "mod(w, 7)", "mod(x, 0.3D)"],
    "pmod": ["pmod(i, j)", "pmod(x, y)", "pmod(d, e)", "pmod(t, 3)", "pmod(l, m)", "pmod(t, t)", "pmod(i, -3)", "pmod(w, d)", "pmod(f, f)"],
    "greatest": ["greatest(i, j)", "greatest(i, l, d)", "greatest(x, y)", "greatest(s, v)", "greatest(ts, te, null)", "greatest(b, c)", "greatest(d, e, w)",
                 "greatest(dt, ts)", "greatest(1 / i, x)", "greatest(null, null)"],
    "least": ["least(i, j)", "least(i, l, d)", "least(x, y, 0)", "least(s, v)", "least(f, x)", "least(w, 1.5)"],
    "coalesce": ["coalesce(i, j)", "coalesce(i, l, 0)", "coalesce(i, 1 / j)", "coalesce(1 / i, x)", "coalesce(s, 'none')", "coalesce(d, i, 1.5)", "coalesce(null, i)",
                 "coalesce(i)", "coalesce(u, 1)", "coalesce(null, null)"],
    "ifnull": ["ifnull(i, 5)", "ifnull(d, 1)"],
    "nvl": ["nvl(s, v)", "nvl(x, 0)"],
    "nullif": ["nullif(i, j)", "nullif(s, 'a')", "nullif(i, 1L)", "nullif(d, 1.25)", "nullif(x, y)", "nullif(1 / i, 1)"],
    "if": ["if(b, i, j)", "if(i = 0, 0, 1 / i)", "if(b, i, d)", "if(null, 1, 2)", "if(b, s, 'x')", "if(1 / i > 0, 1, 0)", "if(b, null, 1)", "if(b, 1, 2L)"],
    "isnan": ["isnan(x)", "isnan(f)", "isnan(i)", "isnan(u)", "isnan(null)"],
    "isnull": ["isnull(i)", "isnull(1 / i)", "isnull(null)"],
    "isnotnull": ["isnotnull(s)", "isnotnull(1 / i)"],
    "lower": ["lower(s)", "lower(i)", "lower('ΑΣ')"],
    "upper": ["upper(s)", "upper(b)", "upper('ŉß')"],
    "trim": ["trim(s)", "trim(both 'a' from s)", "trim(both v from s)", "trim(leading 'ab' from s)", "trim(trailing from s)", "trim(both '' from s)"],
    "ltrim": ["ltrim(s)", "ltrim('a', s)"],
    "rtrim": ["rtrim(s)", "rtrim('c', s)"],
    "reverse": ["reverse(s)", "reverse(i)"],
    "length": ["length(s)", "length(i)", "length(z)", "length(x)", "length(null)", "length(ts)"],
    "char_length": ["char_length(s)", "char_length(u)"],
    "substring": [*(f"substring(s, {at})" for at in (0, 1, 2, -2, 10, -10)), "substring(s, i)", "substring(s, i, j)", "substring(s, -2, 1)", "substring(s, 2, 2)",
                  "substring(s, 0, 2)", "substring(s, -10, 9)", "substring(l, 2, 3)", "substring(s, 2, -1)", "substring(s, l)", "substring(s, x)"],
    "substr": ["substr(s, 2)", "substr(s, t, 2)"],
    "left": ["left(s, 2)", "left(s, i)", "left(s, -1)", "left(u, t)"],
    "right": ["right(s, 2)", "right(s, i)", "right(s, 0)", "right(u, t)"],
    "concat": ["concat(s, v)", "concat(s)", "concat(s, i, x, b, d)", "concat(s, null)", "concat(dt, ' ', ts)", "concat(s, 1 / i)"],
    "concat_ws": ["concat_ws(',', s, v)", "concat_ws(v, s, u)", "concat_ws('-', i, d, null)", "concat_ws(null, s, v)", "concat_ws('', s, s)"],
    "replace": ["replace(s, 'a', 'X')", "replace(s, v, 'y')", "replace(s, 'a')", "replace(s, '', 'x')", "replace(s, 'b', v)", "replace(s, '%', '$1')"],
    "lpad": ["lpad(s, 5, 'xy')", "lpad(s, 2)", "lpad(s, t, v)", "lpad(s, 6, '')", "lpad(s, -1, 'x')", "lpad(u, 4, 'é')", "lpad(s, null, 'x')"],
    "rpad": ["rpad(s, 5, 'xy')", "rpad(s, 2)", "rpad(s, t, v)", "rpad(u, 4, 'é')", "rpad(s, 3, null)"],
    "instr": ["instr(s, 'b')", "instr(s, v)", "instr(s, '')", "instr('aé😀b', 'b')", "instr(v, s)", "instr(i, 1)"],
    "contains": ["contains(s, 'b')", "contains(s, v)", "contains(i, 1)", "contains(s, '')"],
    "startswith": ["startswith(s, 'a')", "startswith(s, v)"],
    "endswith": ["endswith(s, 'c')", "endswith(s, v)"],
    "like": [
        "s like 'a%'", "s like '%c'", "s like '%b%'", "s like 'abc'", "s like '_bc'", "s like 'a%c'", "s like '%'", "s like ''", r"s like 'a\\%b%'", "s like v", "v like s",
        "s not like 'a%'", "s like 'a!%b!_c' escape '!'", "s like 'a!b' escape '!'", r"s like 'abc\\'", "i like '1%'", "s like 'x_y'", "s like '_'", "s like null", "like(s, 'a%')",
        "s like '%.%'", "s like 'a%%'", "s not like '%!%%' escape '!'",
    ],
    "ilike": ["s ilike 'A%'", "s ilike '%C'", "s ilike v", "s not ilike 'abc'", "ilike(s, '_BC')"],
    "rlike": [
        "s rlike 'a'", "s rlike '^a'", "s rlike 'c$'", r"s rlike '\\w+'", r"s rlike '^\\w+$'", "s rlike '.b.'", "s rlike '[a-c]{3}'", "s rlike '('", r"u rlike '^[+-]?\\d+$'", "s regexp 'x.y'",
        "s not rlike 'b'", "rlike(s, '^$')", r"s rlike '\\s'", "s rlike null", "s rlike '(?i)ABC'", "s rlike 'a|b'", r"s rlike '\\p{Upper}'", r"s rlike '[^\\w]'", "s rlike '(?s)x.y'",
    ],
    "md5": ["md5(s)", "md5(z)", "md5(null)"],
    "sha2": ["sha2(s, 256)", "sha2(s, 0)", "sha2(s, 224)", "sha2(z, 384)", "sha2(s, 512)", "sha2(s, 1)", "sha2(s, i)"],
    "crc32": ["crc32(s)", "crc32(z)"],
    "hash": ["hash(i)", "hash(s, l)", "hash(x, d, b)", "hash(ts, dt, null)", "hash(1, 'a')", "hash(w, f)"],
    "xxhash64": ["xxhash64(i)", "xxhash64(s, l, x)", "xxhash64(w, null, t)"],
    "year": ["year(dt)", "year(ts)", "year(n)", "year('2020-05-06')", "year(g)"],
    "month": ["month(dt)", "month(ts)"],
    "day": ["day(dt)", "day(ts)"],
    "dayofmonth": ["dayofmonth(dt)", "dayofmonth(ts)"],
    "dayofweek": ["dayofweek(dt)", "dayofweek(ts)"],
    "hour": ["hour(ts)", "hour(n)", "hour(dt)", "hour('2020-05-06 07:08:09')"],
    "minute": ["minute(ts)", "minute(n)"],
    "second": ["second(ts)", "second(n)"],
    "date_trunc": [
        *(f"date_trunc('{unit}', ts)" for unit in ("year", "yyyy", "yy", "quarter", "month", "mon", "mm", "week", "day", "dd", "hour", "minute", "second", "millisecond", "microsecond")),
        "date_trunc('DAY', dt)", "date_trunc('hour', n)", "date_trunc('month', '2020-05-06')",
    ],
    "unix_timestamp": ["unix_timestamp(ts)", "unix_timestamp(dt)", "unix_timestamp(g)", "unix_timestamp(g, 'yyyy-MM-dd')", "unix_timestamp(g, 'yyyyMMdd')", "unix_timestamp(n)"],
    "to_timestamp": [
        "to_timestamp(g)", "to_timestamp(dt)", "to_timestamp(i)", "to_timestamp(g, 'yyyy-MM-dd')", "to_timestamp(g, 'dd/MM/yyyy')", "to_timestamp(g, 'yyyy-M-d')",
        "to_timestamp(g, 'yyyy-MM-dd HH:mm:ss')", "to_timestamp(g, \"yyyy-MM-dd'T'HH:mm:ss.S\")", "to_timestamp(g, 'yyyy-MM-dd HH:mm:ssX')", "to_timestamp(ts, 'yyyy')",
        "to_timestamp('6 May 2020', 'd MMM yyyy')", "to_timestamp('2020-05-06 07:08:09 PM', 'yyyy-MM-dd hh:mm:ss a')", "to_timestamp('200506', 'yyMMdd')",
        "to_timestamp('05:06', 'HH:mm')", "to_timestamp('2020-05-06 07:08:09.123', 'yyyy-MM-dd HH:mm:ss.SSS')", "to_timestamp(g, 'yyyy')",
        "to_timestamp('2020-05-06 07:08:09.1', 'yyyy-MM-dd HH:mm:ss.SSSSSS')",
    ],
    "cast": [
        *(f"cast({column} as decimal({digits}))" for column in "i l f x d e w u b ts".split() for digits in ("10,2", "5,0", "38,18", "3,3")),
        "cast(g as timestamp_ntz)", "cast(ts as timestamp_ntz)", "cast(dt as timestamp_ntz)", "cast(s as binary)", "cast(null as int)", "i::string", "cast(z as string)",
        "cast(i as varchar(20))", "cast('12' as int) + i", "cast(w as timestamp)",
    ],
    "try_cast": ["try_cast(u as int)", "try_cast(u as double)", "try_cast(u as decimal(5,2))", "try_cast(g as date)", "try_cast(g as timestamp)", "try_cast(x as tinyint)", "try_cast(l as int)",
                 "try_cast(u as boolean)", "try_cast(1 / i as int)"],
}

# What only shows when parts are put together: nesting, laziness, long expressions.
TOGETHER: list[str] = [
    "coalesce(try_cast(u as int), i) + j",
    "if(j <> 0 and i / j > 1, i div j, coalesce(l, 0) % 7)",
    "i + 1 / j",
    "1 / j + i",
    "null + 1 / j",
    "x * (y + 1) - x / nullif(y, 0)",
    "round(x * 100, 2) > 5 or abs(y) < 3 and not b",
    "concat(upper(left(s, 1)), lower(substring(s, 2)))",
    "(i + j) * (i - j) % 1000 + l % 10",
    "d * 2 + e / 3 - w % 5",
    "case when i > 0 then d when j > 0 then e else w end * 1.5",
    "length(concat_ws('-', s, i, d)) + instr(s, v)",
    "round(round(round(x, 3), 2), 1)",
    "pmod(pmod(pmod(i, 7), 5), 3)",
    "greatest(least(i, j), least(j, l), 0) + coalesce(nullif(i, j), 1)",
    "cast(cast(cast(x as decimal(20,3)) as string) as double)",
    "hour(ts + interval 5 hours) + dayofweek(ts)",
    "not (i in (1, 2) or s like 'a%') and ts between '1960-01-01' and '2030-01-01'",
    "b and (c or 1 / i > 0) and (not c or 1 / j > 0)",
    "if(b, 1 / i, 1 / j) > 0 and coalesce(1 / i, 0) >= 0",
    "i in (1 / j, 2) or i is null",
]

CASES: list[str] = list(
    dict.fromkeys(text for group in (OPERATORS, FUNCTIONS) for texts in group.values() for text in texts)
) + TOGETHER
