/**
 * What a few KB of a hostile crawler cost the coordinator's loop: every message that has a list, every packed form that
 * unfolds, and URLs whose hosts are hard to parse, at 4 and 8 KB inflated and at all that a message may be. Each is
 * decoded three times and the quickest is told, with what it cost for each byte on the wire.
 * Run: npm run bench -- hostile-messages
 */
import { constants, deflateRawSync } from "node:zlib";
import { urlKeyOf } from "#core/url-key";
import {
  decodeCrawlerMessage,
  decodeHello,
  decodePackedMessage,
  maxHelloBytes,
  maxMessageBytes,
} from "#protocol/codec";
import { NodeInflater } from "#protocol/deflate";
import { FrameReader, joinFrame, splitFrame } from "#protocol/packed/message-frames";
import { NumberWriter } from "#protocol/packed/numbers";
import { packVector } from "#protocol/packed/vector";

const runs = 3;
const deflated = (text: string) =>
  deflateRawSync(text, { finishFlush: constants.Z_SYNC_FLUSH, level: 9 }).subarray(0, -4);
const filled = (characters: number, unit: string) =>
  unit.repeat(Math.max(0, Math.floor(characters / unit.length)));

function measure(name: string, wireBytes: number, decode: () => unknown): void {
  let leastMs = Number.POSITIVE_INFINITY;
  let said = "taken";
  for (let run = 0; run < runs; run++) {
    const startedAt = performance.now();
    try {
      decode();
    } catch (error) {
      said = (error as Error).message.slice(0, 60);
    }
    leastMs = Math.min(leastMs, performance.now() - startedAt);
  }
  const columns = [`${wireBytes} B`.padStart(9), `${leastMs.toFixed(2)} ms`.padStart(11)];
  const perByte = `${((1000 * leastMs) / wireBytes).toFixed(2)} µs/B`.padStart(12);
  console.log(`${name.padEnd(40)}${columns.join("")}${perByte}  ${said}`);
}

const page = (list: string) => (fill: string) =>
  `{"type":"crawler:result","result":{"page":{"${list}":[${fill}]}}}`;
const shapes: readonly (readonly [name: string, of: (bytes: number) => string])[] = [
  ["lists in lists", (bytes) => filled(bytes / 2, "[") + filled(bytes / 2, "]")],
  ["objects in objects", (bytes) => filled(bytes, '{"a":')],
  ["one text of escapes", (bytes) => `{"type":"${filled(bytes, "\\u0041")}"}`],
  ["fields of one name", (bytes) => `{"type":"x",${filled(bytes, '"a":0,')}"b":1}`],
  ["peers, numbers", (bytes) => `{"type":"crawler:peer-rtts","peers":[0${filled(bytes, ",0")}]}`],
  [
    "peers, wrong outcomes",
    (bytes) =>
      `{"type":"crawler:peer-rtts","peers":[{}${filled(bytes, ',{"outcome":{"type":"measured"}}')}]}`,
  ],
  ["heartbeat, reasons", (bytes) => `{"type":"crawler:heartbeat","holdingBack":[0${filled(bytes, ",0")}]}`],
  ["links, numbers", (bytes) => page("links")(`0${filled(bytes, ",0")}`)],
  ["links, empty", (bytes) => page("links")(`{}${filled(bytes, ",{}")}`)],
  ["headings", (bytes) => page("headings")(`{}${filled(bytes, ",{}")}`)],
  ["feeds", (bytes) => page("feeds")(`0${filled(bytes, ",0")}`)],
  [
    "sitemaps",
    (bytes) => `{"type":"crawler:result","result":{"robots":{"sitemaps":[0${filled(bytes, ",0")}]}}}`,
  ],
  [
    "move, a part",
    (bytes) =>
      `{"type":"crawler:move","moveId":1,"says":{"what":"part","index":0,"part":"${filled(bytes, "A")}!"}}`,
  ],
];
for (const bytes of [4096, 8192, maxMessageBytes - 1000]) {
  console.log(`\n${bytes} bytes inflated`);
  for (const [name, of] of shapes) {
    const wire = deflated(of(bytes));
    measure(name, wire.length, () => decodeCrawlerMessage(new NodeInflater().inflate(wire, maxMessageBytes)));
  }
}

console.log("\nbefore a key was shown");
for (const list of ["heldLeases", "domainSets", "protocolVersions"]) {
  const wire = deflated(
    `{"type":"crawler:hello","protocolVersions":[3],"${list}":[0${filled(60_000, ",0")}]}`,
  );
  measure(`hello, ${list}`, wire.length, () => decodeHello(new NodeInflater().inflate(wire, maxHelloBytes)));
}

console.log("\npacked");
const packed = (name: string, numbers: Buffer, text: string) => {
  const wire = joinFrame(numbers, deflated(text));
  measure(name, wire.length, () => {
    const { numbers: own, deflated: rest } = splitFrame(wire);
    return decodePackedMessage(
      { numbers: own, text: new NodeInflater().inflate(rest, maxMessageBytes) },
      new FrameReader(),
    );
  });
};
const numbersOf = (...values: (number | Buffer)[]) => {
  const numbers = new NumberWriter();
  for (const value of [0, 0, ...values]) {
    if (typeof value === "number") numbers.number(value);
    else numbers.bytes(value);
  }
  return numbers.finish();
};
for (const [words, places] of [
  [1, 16_000],
  [2, 16_000],
  [28, 16_000],
] as const) {
  const at = Array.from({ length: places }, (_, place) => place + 1).join(",");
  const vector = packVector(
    Array.from({ length: words }, (_, word) => `'${String.fromCharCode(97 + word)}':${at}`).join(" "),
  )!;
  const numbers = numbersOf(vector.occurrences, vector.places.length, vector.places);
  packed(`${words} words at ${places} places`, numbers, `\n{a:v}\n${vector.words.join(" ")}`);
}
packed("words without a place", numbersOf(0, 0), `\n{a:v}\n${filled(maxMessageBytes - 1000, "a ")}`);
packed("lines", numbersOf(), `\n{a:s}\n${filled(maxMessageBytes - 1000, "a\n")}`);
packed("lines of JSON", numbersOf(39_000), `\n[j]\n${Array(39_000).fill("[[[]]]").join("\n")}`);

console.log("\nURLs");
const letters = (count: number) =>
  Array.from({ length: count }, (_, at) => String.fromCodePoint(0x4e00 + at)).join("");
for (const [name, text] of [
  ["62 letters that are not ASCII", `http://${letters(62)}/`],
  ["500 of them, in labels", `http://${Array.from({ length: 8 }, () => letters(62)).join(".")}/`],
  ["2,000 of them", `http://${letters(2000)}/`],
  ["8,000 of them", `http://${letters(8000)}/`],
  ["dot segments", `http://a.example/${"../".repeat(2700)}`],
  ["escapes", `http://a.example/${"%41".repeat(2700)}`],
  ["names and passwords", `http://${"a@".repeat(4000)}a.example/`],
] as const) {
  measure(name, Buffer.byteLength(text), () => urlKeyOf(text));
}
