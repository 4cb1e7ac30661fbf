/** What the API says of a subnet: its range, its crawler, and why that crawler has it. */
import { z } from "zod";

export const delegationCause = z
  .enum([
    "own-subnet",
    "probe-round",
    "first-fetch",
    "overload",
    "home",
    "crawler-left",
    "drained",
    "joined",
    "operator",
    "differs-by-place",
    "measures-apart",
    "domain-set",
  ])
  .meta({ id: "DelegationCause", description: "Why this crawler has it." });

export const subnetLine = z
  .strictObject({
    subnetId: z.int(),
    range: z.string(),
    name: z.string(),
    country: z.string().nullable(),
    crawler: z.string().nullable(),
    rttMs: z.number().nullable(),
    inherited: z.boolean(),
  })
  .meta({ id: "SubnetLine" });

export const subnetList = z
  .strictObject({ subnets: z.array(subnetLine), more: z.boolean() })
  .meta({ id: "SubnetList" });
