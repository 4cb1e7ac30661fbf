/** Streams of live events, by fake timers. */
import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { afterEach, expect, it, vi } from "vitest";
import { LiveEvents } from "#coordinator/tell/overview/routes";

afterEach(() => void vi.useRealTimers());

it("ends a stream after five minutes, so that the listener is authorised again", () => {
  vi.useFakeTimers();
  const events = new LiveEvents(
    async () => ({}),
    () => {},
  );
  const response = new ServerResponse(new IncomingMessage(new Socket()));
  events.listen(response);

  vi.advanceTimersByTime(299_999);
  const before = response.writableEnded;
  vi.advanceTimersByTime(1);

  expect([before, response.writableEnded]).toEqual([false, true]);
});

it("sends later listeners the last rendering, without another one", async () => {
  let made = 0;
  const events = new LiveEvents(
    async () => {
      made += 1;
      return { figures: `<p>${made}</p>` };
    },
    () => {},
  );
  const listener = () => {
    const response = new ServerResponse(new IncomingMessage(new Socket()));
    const written: string[] = [];
    response.write = (text: unknown) => written.push(String(text)) > 0;
    events.listen(response);
    return written;
  };
  listener();
  await vi.waitUntil(() => made === 1);
  await Promise.resolve();

  const later = Array.from({ length: 50 }, listener);
  events.close();

  expect(made).toBe(1);
  for (const written of later) expect(written.join("")).toContain('"figures":"<p>1</p>"');
});
