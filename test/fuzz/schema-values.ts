/**
 * Random values that a zod schema allows, mostly edge cases. Texts and numbers are drawn from a pool of odd ones that the
 * schema accepts.
 */
import { z } from "zod";
import { elements } from "#protocol/fields";
import { pick } from "./mutate.ts";

const digest = "0123456789abcdef".repeat(4);
const key = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
const texts: readonly string[] = [
  ...`
a 0 1 -1 <b> %00 __proto__ constructor toString null true {} [] amber athens site.example
xn--mgba3gch31f.example 127.0.0.1 ::1 2001:db8::1 198.41.0.4 0.0.0.0 255.255.255.255 10.0.0.0/8
2001:db8::/32 fe80::1%eth0 ::ffff:10.0.0.1 http://site.example/ https://site.example:8443/a?b=c
http://[2001:db8::1]/ ftp://x/ http://user:pass@x/ //x /a http://site.example/%00 'open
javascript:alert(1) 1 9007199254740993 18446744073709551615 18446744073709551616
340282366920938463463374607431768211455 2026-11-24T12:00:00.000Z 2026-11-24T12:00:00Z
0000-01-01T00:00:00.000Z 9999-12-31T23:59:59.999Z 2026-02-30T00:00:00Z 2026-11-24 1.0.0 0.1
999999.999999.999999.999999-z GR US de text/html head connect icmp follow nc1.x inv_0123456789abcdef
AS3323 utf-8 W/"x" "etag"
`
    .trim()
    .split(/\s+/),
  "",
  " ",
  "\n",
  "\0",
  "a\0b",
  "\ud800",
  "x\udfff",
  "\u202e",
  "'; drop table page; --",
  "語",
  "👋",
  "e\u0301".repeat(50),
  "x".repeat(63),
  "x".repeat(500),
  "x".repeat(501),
  "x".repeat(5000),
  "y".repeat(100_000),
  "\0".repeat(400),
  `${"a".repeat(63)}.example`,
  `http://site.example/${"a".repeat(9000)}`,
  "'two':1A 'word':2A,16383",
  "'a':0 'b':99999",
  "http://site.example/\ud800",
  digest,
  "0".repeat(64),
  key,
  "A".repeat(43),
  "A".repeat(86),
  `${"A".repeat(85)}Q`,
  "f".repeat(16),
  "0".repeat(32),
  "Sun, 22 Nov 2026 08:30:00 GMT",
];
const numbers: readonly number[] = [
  ...`
0 1 2 3 4 7 10 64 80 100 200 301 404 443 500 1000 65535 65536 1e6 1e9 1e15 1e18 1e300
1.7976931348623157e308 0.1 0.5 5e-324 1e-300 -0 -1 -0.5 -90 90 180 -180 -1e9
`
    .trim()
    .split(/\s+/)
    .map(Number),
  2 ** 31 - 1,
  2 ** 31,
  2 ** 32,
  2 ** 53 - 1,
  1 / 3,
];
const wrong: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -1,
  "",
  "x",
  [],
  {},
  [[]],
  { type: "x" },
  1e308,
  [null],
  "\0",
];

/** As deep as any message; deeper values are cut. */
const mostDepth = 12;

type Definition = {
  readonly type: string;
  readonly shape?: Readonly<Record<string, z.ZodType>>;
  readonly element?: z.ZodType;
  readonly options?: readonly z.ZodType[];
  readonly values?: readonly unknown[];
  readonly entries?: Readonly<Record<string, unknown>>;
  readonly innerType?: z.ZodType;
  readonly in?: z.ZodType;
  readonly out?: z.ZodType;
  readonly items?: readonly z.ZodType[];
  readonly keyType?: z.ZodType;
  readonly valueType?: z.ZodType;
  readonly getter?: () => z.ZodType;
};

const fitting = new Map<z.ZodType, readonly unknown[]>();

/** `soiled`: how often a part is invalid or missing. */
export function drawValue(schema: z.ZodType, random: () => number, soiled = 0, depth = 0): unknown {
  if (random() < soiled) return pick(random, wrong);
  const element = elements.get(schema);
  const def = (schema as unknown as { readonly _zod: { readonly def: Definition } })._zod.def;
  const next = (inner: z.ZodType) => drawValue(inner, random, soiled, depth + 1);
  if (element !== undefined) return listOf(element, random, { depth, next });
  switch (def.type) {
    case "object":
      return objectOf(def.shape ?? {}, random, { soiled, next });
    case "array":
      return listOf(def.element ?? z.any(), random, { depth, next });
    case "tuple":
      return (def.items ?? []).map(next);
    case "record":
      return Object.fromEntries(
        Array.from({ length: Math.floor(random() * 3) }, () => [
          String(next(def.keyType ?? z.string())),
          next(def.valueType ?? z.any()),
        ]),
      );
    case "union":
      return next(pick(random, def.options ?? []));
    case "literal":
      return pick(random, def.values ?? []);
    case "enum":
      return pick(random, Object.values(def.entries ?? {}));
    case "nullable":
      return random() < 0.3 ? null : next(def.innerType!);
    case "optional":
    case "default":
    case "prefault":
    case "catch":
    case "readonly":
    case "nonoptional":
      return next(def.innerType!);
    case "pipe":
      return next(def.in instanceof z.ZodTransform ? def.out! : def.in!);
    case "lazy":
      return next(def.getter!());
    case "boolean":
      return random() < 0.5;
    case "null":
      return null;
    case "string":
      return drawn(schema, texts, random);
    case "number":
      return drawn(schema, numbers, random);
    default:
      return pick(random, [...texts, ...numbers, null]);
  }
}

function objectOf(
  shape: Readonly<Record<string, z.ZodType>>,
  random: () => number,
  { soiled, next }: { readonly soiled: number; readonly next: (inner: z.ZodType) => unknown },
): Record<string, unknown> {
  const made: Record<string, unknown> = {};
  for (const [name, inner] of Object.entries(shape)) {
    const mayMiss = inner.safeParse(undefined).success;
    if ((mayMiss && random() < 0.5) || random() < soiled) continue;
    made[name] = next(inner);
  }
  if (random() < 0.02) made[pick(random, ["extra", "__proto__", "constructor"])] = "x";
  return made;
}

function listOf(
  element: z.ZodType,
  random: () => number,
  { depth, next }: { readonly depth: number; readonly next: (inner: z.ZodType) => unknown },
): unknown[] {
  const most = depth > mostDepth ? 0 : random() < 0.03 ? 40 : 3;
  return Array.from({ length: Math.floor(random() * (most + 1)) }, () => next(element));
}

/** A value of the pool that the schema accepts; if there is none, any. */
function drawn(schema: z.ZodType, pool: readonly unknown[], random: () => number): unknown {
  let those = fitting.get(schema);
  if (those === undefined) {
    those = pool.filter((value) => schema.safeParse(value).success);
    fitting.set(schema, those);
  }
  return pick(random, those.length === 0 ? pool : those);
}
