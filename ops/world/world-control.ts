/** The orders that a running world's process takes over IPC; anything else is answered with the reason. */
import { z } from "zod";
import { parseRange } from "#core/ip/range";
import type { RunningWorld } from "./main.ts";

const crawlerIndex = z.number().int().min(0);
const share = z.number().min(0).max(1);
const hour = z.number().min(0).max(24);
const orderShape = z.discriminatedUnion("type", [
  z.object({ type: z.literal("noise"), noiseMs: z.number().min(0).max(10_000) }),
  z.object({ type: z.literal("spikes"), share, spikeMs: z.number().min(0).max(10_000) }),
  z.object({
    type: z.literal("daily-wave"),
    waveMs: z.number().min(0).max(10_000),
    peakHour: hour.optional(),
  }),
  z.object({ type: z.literal("loss"), share, neverShare: share }),
  /** Milliseconds since the epoch. */
  z.object({ type: z.literal("clock"), nowMs: z.number() }),
  z.object({
    type: z.literal("route-change"),
    crawlerIndex,
    /** A host name, or a range as `a - b`, `a/prefix` or one address. */
    to: z.string().max(300),
    factor: z.number().positive().max(1000),
  }),
  z.object({ type: z.literal("outage"), crawlerIndex, isCutOff: z.boolean() }),
  z.object({ type: z.literal("requests") }),
]);

/** Does what is asked; returns what to reply, or null for messages that are no orders of ours. */
export function obey(running: RunningWorld, message: unknown): object | null {
  if (typeof message !== "object" || message === null || (message as { type?: unknown }).type === "start")
    return null;
  const parsed = orderShape.safeParse(message);
  if (!parsed.success) return { type: "refused", reason: parsed.error.issues[0]?.message ?? "not an order" };
  const order = parsed.data;
  switch (order.type) {
    case "noise":
      running.setNoise(order.noiseMs);
      return { type: "done", order: order.type };
    case "spikes":
      running.setSpikes(order);
      return { type: "done", order: order.type };
    case "daily-wave": {
      const { waveMs, peakHour } = order;
      running.setDailyWave(peakHour === undefined ? { waveMs } : { waveMs, peakHour });
      return { type: "done", order: order.type };
    }
    case "loss":
      running.setLoss(order);
      return { type: "done", order: order.type };
    case "clock":
      running.setClock(order.nowMs);
      return { type: "done", order: order.type };
    case "route-change": {
      const range = parseRange(order.to);
      const to = range ? { range } : { host: order.to };
      const addresses = running.changeRoute({ crawlerIndex: order.crawlerIndex, to, factor: order.factor });
      return { type: "done", order: order.type, addresses };
    }
    case "outage":
      running.setOutage(order.crawlerIndex, order.isCutOff);
      return { type: "done", order: order.type };
    case "requests":
      return { type: "requests", total: running.requestLog.total, entries: running.requestLog.entries() };
  }
}
