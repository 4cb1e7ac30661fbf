/** Addresses from a stream: answered line by line, bounded, bad lines told and passed over. */
import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import { type AddressLines, answerAddressLines } from "#ops/cli/rir/lookup-command";
import { type LookUp, readAsked } from "#rir-import/lookup";

const subnet = {
  subnetId: null,
  range: "45.10.0.0/16",
  registry: "ripencc",
  country: "NL",
  name: "EX",
  holder: null,
  handle: null,
  delegatedTo: null,
  addedIn: null,
};

/** A tree with one range in it. */
function lookUp(text: string): LookUp {
  const { asked } = readAsked(text);
  return { asked, chain: asked.startsWith("45.10.") ? [subnet] : [], crossing: [] };
}

async function answersTo(chunks: readonly (string | Buffer)[], options: Partial<AddressLines> = {}) {
  const written: string[] = [];
  const badLines: [number, string][] = [];
  const counts = await answerAddressLines({
    input: Readable.from(chunks.map((chunk) => Buffer.from(chunk as string))),
    lookUp,
    write: async (text) => written.push(text) > 0,
    onBadLine: (line, reason) => badLines.push([line, reason]),
    ...options,
  });
  const lines = written.join("").trimEnd().split("\n");
  return {
    counts,
    written,
    badLines,
    answers: lines.filter((line) => line !== "").map((l) => JSON.parse(l)),
  };
}

describe("addresses from a stream", () => {
  it("each line has its answer with its number, wherever the pieces are cut", async () => {
    const { counts, answers } = await answersTo([
      "45.10.",
      "1.9\r\n\n2a02::1",
      "\n 45.10.0.0/17 \n45.10.2.2",
    ]);

    expect(answers.map(({ line, asked, chain }) => [line, asked, chain.length])).toEqual([
      [1, "45.10.1.9", 1],
      [3, "2a02::1", 0],
      [4, "45.10.0.0/17", 1],
      [5, "45.10.2.2", 1],
    ]);
    expect(counts).toEqual({ found: 3, notFound: 1, bad: 0 });
  });

  it("a line that is no address is told with its number, and the others go on", async () => {
    const { counts, answers, badLines } = await answersTo(["\x00\xff\nexample.org\n45.10.0.1\n1.2.3.4/33\n"]);

    expect(badLines.map(([line]) => line)).toEqual([1, 2, 4]);
    expect(badLines[1]).toEqual([2, '"example.org" is neither an address nor a range']);
    expect(answers.map(({ line, error }) => [line, error !== undefined])).toEqual([
      [1, true],
      [2, true],
      [3, false],
      [4, true],
    ]);
    expect(counts).toEqual({ found: 1, notFound: 0, bad: 3 });
  });

  it("a line of 50 MB is one bad line", async () => {
    const megabyte = Buffer.alloc(1_000_000, " ");
    const { counts, badLines } = await answersTo([...Array(50).fill(megabyte), "\n45.10.0.1\n"]);

    expect(badLines).toEqual([[1, "a line of over 200 characters"]]);
    expect(counts).toEqual({ found: 1, notFound: 0, bad: 1 });
  });

  it("what has come is answered before more is read", async () => {
    const order: string[] = [];
    async function* input() {
      for (const address of ["45.10.0.1", "45.10.0.2"]) {
        order.push(`read ${address}`);
        yield Buffer.from(`${address}\n`);
      }
    }

    await answersTo([], {
      input: input(),
      write: async (text) => order.push(`answered ${JSON.parse(text).asked}`) > 0,
    });

    expect(order).toEqual(["read 45.10.0.1", "answered 45.10.0.1", "read 45.10.0.2", "answered 45.10.0.2"]);
  });

  it("a reader that has gone ends it", async () => {
    let writes = 0;
    const { counts } = await answersTo(["45.10.0.1\n", "45.10.0.2\n", "45.10.0.3\n"], {
      write: async () => ++writes < 2,
    });

    expect(counts.found).toBe(2);
  });
});
