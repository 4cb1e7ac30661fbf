/** Requests to one host wait for each other. */
import { expect, it } from "vitest";
import { HostTurns } from "#rir-import/download/http-client";

const never = new AbortController().signal;
const aTurnOfTheLoop = () => new Promise((resolve) => setImmediate(resolve));

it("in the order they were asked for; other hosts are free", async () => {
  const turns = new HostTurns();
  const order: string[] = [];
  const take = async (host: string, name: string) => {
    const free = await turns.take(host, never);
    order.push(name);
    return free;
  };

  const first = await take("a", "first");
  const second = take("a", "second");
  const third = take("a", "third");
  await take("b", "other host");
  await aTurnOfTheLoop();
  expect(order).toEqual(["first", "other host"]);

  first();
  (await second)();
  await third;
  expect(order).toEqual(["first", "other host", "second", "third"]);
});

it("one that is called off while it waits does not hold up the next", async () => {
  const turns = new HostTurns();
  const calledOff = new AbortController();

  const free = await turns.take("a", never);
  const waiting = turns.take("a", calledOff.signal);
  const next = turns.take("a", never);
  calledOff.abort(new Error("called off"));
  await expect(waiting).rejects.toThrow("called off");
  free();

  await expect(next).resolves.toBeTypeOf("function");
});
