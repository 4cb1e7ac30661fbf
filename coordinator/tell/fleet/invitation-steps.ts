/** The steps from an invitation to the first page, each with its time, and what blocks the next. */
import { z } from "zod";
import { orNull, type ReadOf, record } from "../../web/api-operation.ts";

const invitationStepNames = ["downloaded", "checked", "joined", "running", "first-page"] as const;

export const progressSchema = record("InvitationProgress", {
  invitationId: z.int(),
  name: z.string(),
  steps: z.array(
    z.strictObject({
      name: z.enum(invitationStepNames),
      words: z.string(),
      isDone: z.boolean(),
      at: orNull(
        z.string().meta({ format: "date-time" }),
        "Null: it has not happened, or the time was not recorded.",
      ),
    }),
  ),
  waitsFor: z.string().nullable().describe("What blocks the next step; null: all are done."),
  isOver: z.boolean().describe("No further step is possible."),
});

export type InvitationProgress = ReadOf<typeof progressSchema>;

type InvitationStepName = (typeof invitationStepNames)[number];

export interface InvitationFacts {
  readonly invitationId: number;
  readonly name: string;
  readonly isOpen: boolean;
  readonly withdrawnAt: Date | null;
  readonly downloadedAt: Date | null;
  readonly joinedAt: Date | null;
  /** When its release last ran, or null. */
  readonly ranAt: Date | null;
  readonly isConnected: boolean | null;
  readonly removedAt: Date | null;
  readonly awayBecause: string | null;
  /** The quarter of an hour with its first page; null if there was none, or it is long ago. */
  readonly firstPageBy: Date | null;
  readonly hasSubnets: boolean;
}

const stepWords: Readonly<Record<InvitationStepName, string>> = {
  downloaded: "The partner's machine has downloaded the crawler's file",
  checked: "The machine was checked, and reaches the coordinator",
  joined: "It has joined, with an identity and a key of its own",
  running: "It runs a release and is connected",
  "first-page": "It has fetched its first page",
};

export function invitationProgress(facts: InvitationFacts): InvitationProgress {
  const { invitationId, name, downloadedAt, joinedAt, ranAt, firstPageBy } = facts;
  // Joining checks the machine first and stops at any problem.
  const at: Readonly<Record<InvitationStepName, Date | null>> = {
    downloaded: downloadedAt,
    checked: joinedAt,
    joined: joinedAt,
    running: ranAt,
    "first-page": firstPageBy,
  };
  const steps = invitationStepNames.map((step) => ({
    name: step,
    words: stepWords[step],
    // If nearcrawl was already installed, nothing was downloaded.
    isDone: at[step] !== null || (step === "downloaded" && joinedAt !== null),
    at: at[step]?.toISOString() ?? null,
  }));
  const next = steps.find(({ isDone }) => !isDone)?.name ?? null;
  const isOver = facts.removedAt !== null || (joinedAt === null && !facts.isOpen);
  return { invitationId, name, steps, isOver, waitsFor: next === null ? null : inTheWay(next, facts) };
}

function inTheWay(next: InvitationStepName, facts: InvitationFacts): string {
  const { name, withdrawnAt, removedAt, isOpen, awayBecause, isConnected, hasSubnets } = facts;
  if (removedAt !== null)
    return `${name} was removed. To take it back, reissue its credentials: nearcrawl fleet reinvite ${name}.`;
  if (facts.joinedAt === null && withdrawnAt !== null) return "The invitation was withdrawn: invite again.";
  if (facts.joinedAt === null && !isOpen) return "The invitation expired unused: invite again.";
  switch (next) {
    case "downloaded":
      return "The partner has not run the command yet, or its machine does not reach the coordinator.";
    case "checked":
    case "joined":
      return (
        "The command was run, but the token has not been used: it was not pasted, or the first check found a problem. " +
        "The partner's terminal says which; so does check."
      );
    case "running":
      return awayBecause === null || awayBecause === ""
        ? "It has joined but was not started: join prints the command (node nearcrawl-crawler.mjs run)."
        : `It has joined; its last message: ${awayBecause}`;
    case "first-page":
      if (isConnected !== true) return `It is not connected: ${awayBecause ?? "its page says why"}.`;
      return hasSubnets
        ? "It has subnets. It fetches its first page when one of their hosts is due: “nearcrawl queue” " +
            "says when; or submit a URL (“nearcrawl urls add”)."
        : "It is connected and measuring; it gets the subnets that it is nearest to. Without URLs there is nothing to assign: “nearcrawl urls add”.";
  }
}
