/** Work that many request at once: combined into few batches, or limited in number. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { AtOnce, Gathered } from "#core/coalesce";

/** Work that ends when the test says so. */
function heldBack() {
  const open: (() => void)[] = [];
  return {
    begun: () => open.length,
    hold: async () => await new Promise<void>((resolve) => open.push(resolve)),
    end: (index: number) => open[index]?.(),
  };
}

test("a single caller does not wait, and many callers in quick succession are served together", async () => {
  const pieces: (readonly string[])[] = [];
  const gathered = new Gathered(async (items: readonly string[]) => {
    pieces.push(items);
    return items;
  }, 10);

  await gathered.ask("alone");
  await gathered.ask("alone again");
  const first = [gathered.ask("a"), gathered.ask("b"), gathered.ask("c")];
  await Promise.all(first);
  const later: Promise<string>[] = [];
  for (const item of ["d", "e", "f"]) {
    later.push(gathered.ask(item));
    await nextTurn();
  }

  expect(await Promise.all(later)).toEqual(["d", "e", "f"]);
  expect(pieces).toEqual([["alone"], ["alone again"], ["a", "b", "c"], ["d", "e", "f"]]);
});

test("a limited number of pieces run at once, the others in the order in which they came", async () => {
  const held = heldBack();
  const atOnce = new AtOnce(2);
  const order: number[] = [];
  const all = [0, 1, 2, 3].map((number) =>
    atOnce.run(async () => {
      order.push(number);
      await held.hold();
      return number;
    }),
  );
  await nextTurn();
  expect([held.begun(), atOnce.waiting]).toEqual([2, 2]);

  held.end(1);
  expect(await all[1]).toBe(1);
  await nextTurn();
  expect([order, atOnce.waiting]).toEqual([[0, 1, 2], 1]);
  held.end(0);
  await all[0];
  await nextTurn();
  for (const index of [2, 3]) held.end(index);

  expect(await Promise.all(all)).toEqual([0, 1, 2, 3]);
});

test("a piece that fails makes room for the next, and rejects for its caller alone", async () => {
  const atOnce = new AtOnce(1);
  const failing = atOnce.run(async () => await Promise.reject(new Error("the database is away")));
  const next = atOnce.run(async () => "done");

  await expect(failing).rejects.toThrow("the database is away");
  expect(await next).toBe("done");
});
