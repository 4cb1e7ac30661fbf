/** The settings of hints: in the coordinator's file, and as policies that operators change while it runs. */
import { z } from "zod";
import { policy } from "../core/policy.ts";

export const hintSettings = z.strictObject({
  indexNow: policy(z.boolean().default(true), {
    title: "Take IndexNow submissions",
    help: "Sites may name URLs that changed at /indexnow, with a key that a file on the site has to state. No host comes into the crawl by it.",
    unit: null,
    origin: "our judgement, whoever sends one costs his own host a fetch",
  }),
  webSub: policy(z.boolean().default(false), {
    title: "Subscribe to feeds by WebSub",
    help: "Feeds that name a hub are subscribed there, so that the hub tells of changes. It needs publicUrl, where hubs reach the coordinator.",
    unit: null,
    origin: "our judgement, off: the coordinator itself speaks to hubs that strangers name",
  }),
  perHostAndDay: policy(z.int().min(0).max(100_000).default(200), {
    title: "Hints per host and day",
    help: "The most hints of a host that move a fetch in one day (UTC), for IndexNow and for WebSub each. A host whose hints turn out wrong is heard less.",
    unit: "hints",
    origin: "our judgement, what a busy news site publishes in a day",
  }),
  urlMinutes: policy(z.number().min(1).max(10_080).default(30), {
    title: "Between hinted fetches of a URL",
    help: "After a fetch of a URL, a hint moves the next one no nearer than this.",
    unit: "minutes",
    origin: "our judgement",
  }),
  feedsPerHost: policy(z.int().min(1).max(20).default(3), {
    title: "Subscribed feeds per host",
    help: "The most feeds of one host that are subscribed at hubs.",
    unit: "feeds",
    origin: "our judgement, a site has one feed that matters, or two",
  }),
});

export type HintPolicies = Readonly<z.infer<typeof hintSettings>>;
