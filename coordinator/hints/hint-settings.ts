/** The settings of hints: in the coordinator's file, and as policies that operators change while it runs. */
import { z } from "zod";
import { policy } from "../core/policy.ts";

export const hintSettings = z.strictObject({
  indexNow: policy(z.boolean().default(true), {
    title: "Accept IndexNow submissions",
    help: "Sites may report changed URLs at /indexnow, with a key that a file on the site must contain. It never adds a host to the crawl.",
    unit: null,
    origin: "our judgement, each one costs its own host a fetch",
  }),
  webSub: policy(z.boolean().default(false), {
    title: "Subscribe to feeds by WebSub",
    help: "Feeds that name a hub are subscribed there, and the hub reports their changes. Needs publicUrl, where hubs reach the coordinator.",
    unit: null,
    origin: "our judgement, off: the coordinator itself speaks to hubs that strangers name",
  }),
  perHostAndDay: policy(z.int().min(0).max(100_000).default(200), {
    title: "Hints per host per day",
    help: "The most hints of a host that move a fetch in one day (UTC), for IndexNow and WebSub each. A host with wrong hints gets a lower limit.",
    unit: "hints",
    origin: "our judgement, what a busy news site publishes in a day",
  }),
  urlMinutes: policy(z.number().min(1).max(10_080).default(30), {
    title: "Between hinted fetches of a URL",
    help: "No hint moves the next fetch of a URL closer to its last one than this.",
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
