/**
 * A few KB on the wire cost no more than an honest message, because their content is counted before it is built. The tests
 * count work, not time; `npm run bench -- hostile-messages` has the milliseconds.
 */
import { constants, deflateRawSync } from "node:zlib";
import { afterEach, expect, it, vi } from "vitest";
import { z } from "zod";
import { decodeHello, decodePackedMessage, maxMessageBytes } from "#protocol/codec";
import { NodeInflater } from "#protocol/deflate";
import { listOf } from "#protocol/fields";
import { FrameReader } from "#protocol/packed/message-frames";
import { NumberWriter } from "#protocol/packed/numbers";
import { boundStructure } from "#protocol/packed/unpack-message";
import { maxListedUrls } from "#protocol/result";
import { packedJson } from "./packed-json.ts";

afterEach(() => void vi.restoreAllMocks());

const whole = maxMessageBytes - 1000;
const filled = (characters: number, unit: string) => unit.repeat(Math.floor(characters / unit.length));
const deflated = (text: string) =>
  deflateRawSync(text, { finishFlush: constants.Z_SYNC_FLUSH, level: 9 }).subarray(0, -4);
const bounds = { values: 150_000, depth: 16 };

it.each([
  ["lists in lists", filled(whole / 2, "["), /nested deeper than 16/],
  ["objects in objects", filled(whole, '{"a":'), /nested deeper than 16/],
  [
    "numbers in a list",
    `{"type":"crawler:peer-rtts","peers":[0${filled(whole, ",0")}]}`,
    /more than 150000 values/,
  ],
  [
    "objects in a list",
    `{"type":"crawler:result","result":{"page":{"links":[{}${filled(whole, ",{}")}]}}}`,
    /more than/,
  ],
  [
    "fields of one name",
    `{"type":"crawler:goodbye",${filled(whole, '"a":0,')}"b":0}`,
    /more than 150000 values/,
  ],
])("%s, 8 MB in a few KB, are refused before anything is built of them", (_what, text, words) => {
  const wire = deflated(text);
  const parse = vi.spyOn(JSON, "parse");

  const inflated = new NodeInflater().inflate(wire, maxMessageBytes);

  expect(wire.length).toBeLessThan(13_000);
  expect(() => decodeHello(inflated)).toThrow(words);
  expect(parse).not.toHaveBeenCalled();
});

it("brackets, commas and quotes in texts do not count as values, however they are escaped", () => {
  const texts = ["[[[[", "{,,,,", '\\"[,', "\\\\", '\\\\\\"[[[', "語[", '"'];
  const text = JSON.stringify({ a: texts, [texts.join("")]: [texts] });

  expect(boundStructure(text, { values: 1 + 2 * texts.length + 5, depth: 3 })).toBeLessThan(22);
  expect(() => boundStructure(JSON.stringify(texts), { values: 7, depth: 1 })).toThrow("more than 7 values");
  expect(boundStructure('"never closed [[[[', bounds)).toBe(1);
});

it("a list is checked up to its first fault, which the message names by its place", () => {
  let looked = 0;
  const element = z.object({ url: z.string().refine(() => ++looked > 0) });
  const values = [{ url: "a" }, ...Array(maxListedUrls - 1).fill({ url: 1, anchor: 2 })];

  const checked = listOf(element, maxListedUrls).safeParse(values);

  expect(checked.error?.issues.map(({ path }) => path)).toEqual([[1, "url"]]);
  expect(looked).toBe(1);
  expect(listOf(element, 1).safeParse(values).error?.issues[0]?.message).toContain("<=1 items");
  const links = { type: "crawler:result", result: { page: { links: Array(maxListedUrls).fill(0) } } };
  const [, more] =
    /\(and (\d+) more\)/.exec(
      String(caught(() => decodePackedMessage(packedJson(JSON.stringify(links)), new FrameReader()))),
    ) ?? [];
  expect(Number(more)).toBeLessThan(50);
});

it("packed, lines of JSON count together", () => {
  const lines = Array(1000).fill(`[0${filled(400, ",0")}]`);
  const numbers = new NumberWriter();
  for (const number of [0, 0, lines.length]) numbers.number(number);
  const parts = { numbers: numbers.finish(), text: Buffer.from(`\n[j]\n${lines.join("\n")}`) };
  const parse = vi.spyOn(JSON, "parse");

  expect(() => decodePackedMessage(parts, new FrameReader())).toThrow("values");
  expect(parse.mock.calls.length).toBeLessThan(1000);
});

function caught(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return error;
  }
}
