/** Chunks become blocks of whole lines; what has no end is let go of. */
import { describe, expect, it } from "vitest";
import { BlockCutter, maxLineBytes } from "#rir-import/formats/line-blocks";

function cutter() {
  const seen: string[] = [];
  const cut = new BlockCutter({
    block: (bytes, start, end) => seen.push(bytes.toString("latin1", start, end)),
    longLine: (beginning) => seen.push(`too long: ${beginning.toString("latin1", 0, 5)}`),
  });
  const push = (...pieces: readonly string[]) => {
    for (const piece of pieces) cut.push(Buffer.from(piece));
    return seen;
  };
  return { cut, push, seen };
}

describe("blocks", () => {
  it("hold whole lines, the carried one by itself", () => {
    const { push } = cutter();

    expect(push("a\nb\nc", "d", "\ne\nf\n")).toEqual(["a\nb\n", "cd\n", "e\nf\n"]);
  });

  it("end with the last line, which may lack its end", () => {
    const { cut, push, seen } = cutter();

    push("a\nb");
    expect(cut.insideLine).toBe(true);
    cut.end();

    expect(seen).toEqual(["a\n", "b"]);
    expect(cut.insideLine).toBe(false);
  });

  it("a line that does not end is let go of as soon as it is too long, once", () => {
    const { cut, push, seen } = cutter();

    push("x".repeat(maxLineBytes));
    expect(seen).toEqual([]);
    push("x");
    expect(seen).toEqual(["too long: xxxxx"]);
    push("x".repeat(maxLineBytes), "x".repeat(maxLineBytes));
    expect(cut.insideLine).toBe(true);

    expect(push("x\nnext\n")).toEqual(["too long: xxxxx", "next\n"]);
  });
});
