/** Settings of comparisons and their consequences. */
import { z } from "zod";
import { type DeepReadonly, policy, seconds } from "../../core/policy.ts";
import { defaultTrustRule } from "./evidence.ts";
import { defaultSamplingRule } from "./page-sketch.ts";

/** A share of each crawler's pages is fetched by another crawler, too, and compared. */
export const trustSettings = z.strictObject({
  share: policy(z.number().min(0).max(1).default(defaultSamplingRule.share), {
    title: "Double-checked share",
    basic: true,
    help: "The share of an established crawler's pages that another crawler fetches as well, for comparison; 0.05 is one in twenty.",
    unit: "of its pages",
    origin: "measured, test/bench/results/trust.md",
  }),
  newcomerShare: z.number().min(0).max(1).default(defaultSamplingRule.newcomerShare),
  newcomerPages: z.int().min(0).max(10_000_000).default(defaultSamplingRule.newcomerPages),
  /** Double-checked share of a crawler's next `watchedPages` pages, after one of its pages matched nobody else's. */
  watchedShare: z.number().min(0).max(1).default(defaultSamplingRule.watchedShare),
  watchedPages: z.int().min(0).max(10_000_000).default(defaultSamplingRule.watchedPages),
  /** Maximum time between the two fetches. After a longer wait, too many pages have changed on their own. */
  slotSeconds: seconds(86_400).default(600),
  alteredShare: z.number().min(0.001).max(1).default(defaultTrustRule.alteredShare),
  threshold: z.number().min(1).max(100).default(defaultTrustRule.threshold),
  onDistrust: policy(z.enum(["drain", "keep"]).default("drain"), {
    title: "When a crawler is distrusted",
    help: "drain: its subnets go to others and its latest pages are fetched again; keep: it gets no new ones.",
    unit: null,
    origin: "our judgement, a liar's pages harm every reader",
  }),
  witnesses: policy(z.boolean().default(true), {
    title: "Second witnesses",
    help:
      "Whether a probe report that wins a subnet is held against other crawlers' before it is " +
      "believed. It costs 0.2 to 1.1 probes per subnet where nobody lies; who runs all crawlers " +
      "themselves may do without.",
    unit: null,
    origin: "measured, test/bench/results/trust.md",
    replayed: true,
  }),
  refetchPages: z.int().min(0).max(1_000_000).default(10_000),
});

export type TrustSettings = DeepReadonly<z.infer<typeof trustSettings>>;
