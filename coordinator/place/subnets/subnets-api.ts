/** API schemas of subnets (ranges, holders and the reason for their crawler) and of the organisations that hold them. */
import { z } from "zod";
import { delegationCauseWords, namesOf } from "#core/explanation";
import { dateTime, type ToldOf } from "../../web/api-operation.ts";

export const crawlerName = z
  .strictObject({ crawlerId: z.int(), name: z.string(), state: z.enum(["online", "offline", "draining"]) })
  .meta({ id: "CrawlerName" });

export const holderName = z
  .strictObject({ holderId: z.int(), name: z.string(), handle: z.string().nullable() })
  .meta({ id: "HolderName" });

export const delegationCause = z
  .enum(namesOf(delegationCauseWords))
  .meta({ id: "DelegationCause", description: "Why this crawler has it." });

const ownDelegation = z
  .strictObject({
    crawler: crawlerName,
    measured: z.boolean().describe("False: nobody has answered, or nobody was compared; to be tried again."),
    rttMs: z.number().nullable(),
    runnerUp: crawlerName.nullable(),
    runnerUpRttMs: z.number().nullable(),
    cause: delegationCause,
    since: dateTime(),
    roundId: z.int().nullable(),
  })
  .meta({ id: "OwnDelegation" });

export const chainSubnet = z
  .strictObject({
    subnetId: z.int(),
    range: z.string().describe("A CIDR block, or `first - last` where the range is none."),
    unary: z.boolean().describe("One address only: skipped for its parent."),
    name: z.string(),
    holder: holderName.nullable(),
    country: z.string().nullable(),
    registry: z.string(),
    delegation: ownDelegation.nullable(),
  })
  .meta({ id: "ChainSubnet" });

export const effectiveDelegation = ownDelegation
  .extend({
    subnetId: z.int(),
    range: z.string(),
    inherited: z.boolean().describe("True: of a less specific subnet."),
    finer: z
      .enum(["host", "part"])
      .nullable()
      .describe("Set where it is not the subnet's: for one host by itself, or for a part of the subnet."),
  })
  .meta({
    id: "EffectiveDelegation",
    description: "Own, or of the nearest less specific subnet that has one.",
  });

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

export const neighbours = z
  .strictObject({
    before: z.array(subnetLine),
    after: z.array(subnetLine),
    moreBefore: z.boolean(),
    moreAfter: z.boolean(),
  })
  .meta({ id: "Neighbours", description: "Subnets next to one by address, the nearest first." });

export const organisationReport = z
  .strictObject({
    holderId: z.int(),
    name: z.string(),
    handle: z.string().nullable(),
    registry: z.string().nullable(),
    holderKey: z.string(),
    subnetCount: z.int(),
    byCrawler: z.array(
      z.strictObject({
        crawler: z.string().nullable().describe("Null: no delegation of their own."),
        subnets: z.int(),
      }),
    ),
    list: subnetList,
  })
  .meta({ id: "OrganisationReport" });

export const nearMatch = z
  .strictObject({
    type: z.enum(["organisation", "crawler", "host"]),
    name: z.string(),
    handle: z.string().nullable(),
    similarity: z.number().describe("0 to 1."),
  })
  .meta({ id: "NearMatch" });

export type OwnDelegation = ToldOf<typeof ownDelegation>;
export type ChainSubnet = ToldOf<typeof chainSubnet>;
export type EffectiveDelegation = ToldOf<typeof effectiveDelegation>;
export type SubnetLine = ToldOf<typeof subnetLine>;
export type SubnetList = ToldOf<typeof subnetList>;
export type Neighbours = ToldOf<typeof neighbours>;
export type OrganisationReport = ToldOf<typeof organisationReport>;
export type NearMatch = ToldOf<typeof nearMatch>;
