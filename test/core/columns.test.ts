import { describe, expect, it } from "vitest";
import { seededRandom } from "#core/random";
import { TextPool } from "#core/text-pool";

const awkward = ["", "a", "é", "日本語", "\u0000", "😀", "x".repeat(10_000), "Ł".repeat(49), " ", "\\N\t\n"];

describe("a text pool", () => {
  it("gives every text one id, in the order of first sight", () => {
    const pool = new TextPool();

    const ids = ["b", "a", "b", "", "a"].map((text) => pool.intern(text));

    expect(ids).toEqual([0, 1, 0, 2, 1]);
    expect(pool.count).toBe(3);
  });

  it("returns every text unchanged, whatever its characters", () => {
    const pool = new TextPool();

    const ids = awkward.map((text) => pool.intern(text));

    expect(ids.map((id) => pool.textAt(id))).toEqual(awkward);
  });

  it("finds a text without adding it", () => {
    const pool = new TextPool();
    pool.intern("here");

    expect([pool.find("here"), pool.find("not here"), pool.count]).toEqual([0, -1, 1]);
  });

  it("agrees with a map of strings over a hundred thousand texts with repeats", () => {
    const random = seededRandom(7);
    const pool = new TextPool();
    const expected = new Map<string, number>();
    const wrong: string[] = [];

    for (let round = 0; round < 100_000; round += 1) {
      const text = `NET-${Math.floor(random() * 60_000).toString(36)}-é`;
      if (!expected.has(text)) expected.set(text, expected.size);
      if (pool.intern(text) !== expected.get(text)) wrong.push(text);
    }

    expect(pool.count).toBe(expected.size);
    for (const [text, id] of expected) if (pool.textAt(id) !== text) wrong.push(text);
    expect(wrong).toEqual([]);
  });

  it("is the same after a round trip through its parts, and can still grow", () => {
    const pool = new TextPool();
    for (let text = 0; text < 1000; text += 1) pool.intern(`text ${text}`);
    const { text, ends } = pool.parts();

    const copy = TextPool.from({ text: text.slice(), ends: ends.slice() });

    expect(copy.textAt(999)).toBe("text 999");
    expect(copy.intern("text 5")).toBe(5);
    expect(copy.intern("new")).toBe(1000);
  });

  it("refuses parts that do not fit together", () => {
    const text = Buffer.from("abc");

    expect(() => TextPool.from({ text, ends: Uint32Array.of(2, 1, 3) })).toThrow("do not rise");
    expect(() => TextPool.from({ text, ends: Uint32Array.of(2) })).toThrow("end at 2, not at 3");
  });

  it("keeps half a surrogate pair from breaking what follows", () => {
    const pool = new TextPool();

    const id = pool.intern("a\ud800b");

    expect(pool.textAt(id)).toBe("a\ufffdb");
    expect(pool.textAt(pool.intern("next"))).toBe("next");
  });
});
