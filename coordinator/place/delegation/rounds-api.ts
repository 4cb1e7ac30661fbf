/** API schemas of probe rounds and their decisions. */
import { z } from "zod";
import { changeCauseWords, namesOf, roundCauseWords } from "#core/explanation";
import { probeMethods } from "#protocol/messages";
import { dateTime, type ToldOf } from "../../web/api-operation.ts";
import { crawlerName, delegationCause } from "../subnets/subnets-api.ts";

const roundCause = z
  .enum(namesOf(roundCauseWords))
  .meta({ id: "RoundCause", description: "Why the round was held." });

const changeCause = z.enum(namesOf(changeCauseWords)).meta({
  id: "ChangeCause",
  description:
    "Why a delegation passed to another crawler: of the delegation, or of the round that decided it; " +
    "joined-again: what had a delegation of its own goes with its subnet again.",
});

const roundProbe = z
  .strictObject({
    ordinal: z.int(),
    crawler: crawlerName,
    method: z.enum(probeMethods),
    outcome: z.string(),
    rttMs: z.number().nullable(),
    detail: z.string(),
  })
  .meta({ id: "RoundProbe" });

export const ruledOut = z
  .strictObject({
    crawler: crawlerName,
    lowerBoundMs: z.number().nullable().describe("The least RTT that the triangle inequality leaves it."),
    ruledOut: z.boolean(),
  })
  .meta({ id: "RuledOut" });

export const probeRound = z
  .strictObject({
    roundId: z.int(),
    subnetId: z.int(),
    cause: roundCause,
    policy: z.string(),
    parameters: z.looseObject({}),
    targetUrl: z.string(),
    targetAddress: z.string(),
    startedAt: dateTime(),
    decidedAt: dateTime(),
    crawler: crawlerName.nullable(),
    runnerUp: crawlerName.nullable(),
    reason: z.looseObject({}).describe("As recorded; `type` says which."),
    reasonWords: z.string(),
    probes: z.array(roundProbe),
    notAsked: z.array(ruledOut),
  })
  .meta({ id: "ProbeRound" });

export const delegationChange = z
  .strictObject({
    subnetId: z.int(),
    changedAt: dateTime(),
    from: z.string().nullable(),
    to: z.string().nullable(),
    cause: changeCause,
    roundId: z.int().nullable(),
    reason: z.string(),
  })
  .meta({ id: "DelegationChange" });

export const finerReport = z
  .strictObject({
    type: z.enum(["host", "part"]),
    subnetId: z.int(),
    range: z.string().nullable(),
    host: z.string().nullable(),
    crawler: crawlerName,
    measured: z.boolean(),
    rttMs: z.number().nullable(),
    runnerUp: crawlerName.nullable(),
    runnerUpRttMs: z.number().nullable(),
    subnetRttMs: z.number().nullable().describe("What the subnet's own crawler measured in the same round."),
    cause: delegationCause,
    since: dateTime(),
    roundId: z.int().nullable(),
    seen: z
      .array(z.strictObject({ crawler: z.string().nullable(), addresses: z.array(z.string()) }))
      .describe("What each vantage point was told, for a host; crawler null is the coordinator."),
    foundAt: dateTime(),
  })
  .meta({
    id: "FinerReport",
    description:
      "A delegation finer than a subnet: a host whose name resolves differently by place, or a part of a leaf that measures apart.",
  });

export type RoundProbe = ToldOf<typeof roundProbe>;
export type RuledOut = ToldOf<typeof ruledOut>;
export type ProbeRound = ToldOf<typeof probeRound>;
export type DelegationChange = ToldOf<typeof delegationChange>;
/** The delegation of one host or part of a leaf, which overrides its subnet's. */
export type FinerReport = ToldOf<typeof finerReport>;

/** A stored round, before its reason is put into words and ruled-out crawlers are derived. */
export type RecordedRound = Omit<ProbeRound, "reasonWords" | "notAsked">;
