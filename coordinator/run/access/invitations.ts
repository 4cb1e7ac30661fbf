/** An operator invites a crawler: what is kept of it, and the one command that its partner runs. */

import type { Secrets } from "#core/access-types";
import type { Change } from "#core/audit";
import type { KeyScope } from "#protocol/identity";
import { formatInvitation } from "#protocol/invitation";
import { invitationPrefix } from "../../place/crawlers/admit-crawler.ts";
import type { InvitationStore } from "../../place/crawlers/invitation-store.ts";

interface InvitationRequest {
  readonly name: string;
  /** For a crawler that is there and gets a new identity. */
  readonly renews: boolean;
  readonly scopes: readonly KeyScope[];
  /** Null: what the partner allows. */
  readonly pagesPerDay: number | null;
  readonly bytesPerDay: number | null;
  readonly expiresHours: number;
  readonly createdBy: string;
}

/** Whom the crawler is to talk to, and whose releases it is to run. */
export interface InvitingCoordinator {
  /** `wss://HOST/crawler`; `ws://` on loopback only. */
  readonly coordinatorUrl: string;
  readonly certificatePin: string | null;
  /** One at least. */
  readonly releaseKeys: readonly string[];
  /** How many of them it takes together to say who signs. */
  readonly releaseThreshold: number;
  /** The release that a crawler starts with; null: none is offered to all, and it will wait for one. */
  readonly firstRelease: string | null;
}

export interface IssuedInvitation {
  readonly invitationId: number;
  readonly name: string;
  readonly renews: boolean;
  readonly coordinatorUrl: string;
  readonly certificatePin: string | null;
  readonly releaseKeys: readonly string[];
  readonly releaseThreshold: number;
  readonly firstRelease: string | null;
  readonly expiresAt: Date;
  /** Shown this once: its secret is kept as a hash. */
  readonly token: string;
  readonly commands: JoinCommands;
}

/**
 * The same in two ways; one of them is enough. They read the token from standard input: an argument would stand in
 * the shell's history, and in the list of processes for everybody on that machine.
 */
interface JoinCommands {
  /** Needs Node.js and nothing of ours. */
  readonly download: string;
  /** Where nearcrawl is installed. */
  readonly installed: string;
}

/** Bounds for whoever asks: an hour, and a month. */
export const invitationHours = { least: 1, most: 720, usual: 72 } as const;
const hourMs = 3_600_000;

export async function issueInvitation(
  request: InvitationRequest,
  ports: {
    readonly invitations: Pick<InvitationStore, "create">;
    readonly coordinator: InvitingCoordinator;
    readonly secrets: Secrets;
  },
  now: Date,
): Promise<IssuedInvitation | "name-taken" | "no-such-crawler"> {
  const { expiresHours, ...invited } = request;
  const { secret, hash: secretHash } = ports.secrets.make(invitationPrefix);
  const expiresAt = new Date(now.getTime() + expiresHours * hourMs);
  const token = formatInvitation({
    ...ports.coordinator,
    releaseKeys: [...ports.coordinator.releaseKeys],
    name: invited.name,
    secret,
    expiresAt: expiresAt.toISOString(),
  });
  const made = await ports.invitations.create({ ...invited, secretHash, createdAt: now, expiresAt });
  if (typeof made === "string") return made;
  const { name, renews } = invited;
  const commands = joinCommands(ports.coordinator, made);
  return { invitationId: made, name, renews, ...ports.coordinator, expiresAt, token, commands };
}

/** As the audit log keeps it: without the token. */
export function invitationMade(issued: IssuedInvitation, request: InvitationRequest): Change {
  const { invitationId, name, expiresAt } = issued;
  const { renews, scopes, pagesPerDay, bytesPerDay } = request;
  return {
    action: renews ? "crawler-reinvited" : "crawler-invited",
    target: name,
    words: `Invitation ${invitationId} for ${name}, valid until ${expiresAt.toISOString()}.`,
    after: { invitationId, name, renews, scopes, pagesPerDay, bytesPerDay, expiresAt },
  };
}

/** Whose releases it takes: the keys that it pins, and how many of them it takes together. */
export function pinnedKeyWords({
  releaseKeys,
  releaseThreshold,
}: Pick<IssuedInvitation, "releaseKeys" | "releaseThreshold">): string {
  return releaseThreshold === 1
    ? releaseKeys.join(" or ")
    : `those whom ${releaseThreshold} of ${releaseKeys.join(", ")} name`;
}

/** What the crawler runs first, in a sentence. */
export function firstReleaseWords({ firstRelease }: Pick<IssuedInvitation, "firstRelease">): string {
  return firstRelease === null
    ? "No release is offered to all yet, so it will wait until one is: nearcrawl release list, then nearcrawl release stage VERSION --to all."
    : `It starts with release ${firstRelease}.`;
}

/** The file comes from the coordinator that is pinned: curl, too, takes it from nobody else. */
function joinCommands(
  { coordinatorUrl, certificatePin }: Pick<InvitingCoordinator, "coordinatorUrl" | "certificatePin">,
  invitationId: number,
): JoinCommands {
  // The number tells the operator's page that the line is being used; it opens nothing.
  const url = new URL(`/releases/dock.mjs?invitation=${invitationId}`, coordinatorUrl.replace(/^ws/, "http"))
    .href;
  const pinned =
    certificatePin === null ? "" : `--insecure --pinnedpubkey 'sha256//${plainBase64(certificatePin)}' `;
  const file = "nearcrawl-crawler.mjs";
  return {
    download: `curl -fsS ${pinned}-o ${file} '${url}' && node ${file} join -`,
    installed: `nearcrawl crawler join -`,
  };
}

/** curl wants the padded form with + and /. */
const plainBase64 = (text: string) => Buffer.from(text, "base64url").toString("base64");
