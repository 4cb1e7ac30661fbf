/** An operator's invitation of a crawler: what is stored of it, and the command that its partner runs. */

import type { Secrets } from "#core/access-types";
import type { Change } from "#core/audit";
import { formatInvitation } from "#protocol/invitation";
import { invitationPrefix } from "../../place/crawlers/admit-crawler.ts";
import type { Budget } from "../../place/crawlers/crawler.ts";
import type { InvitationRecord } from "../../place/crawlers/identity.ts";
import type { InvitationStore } from "../../place/crawlers/invitation-store.ts";

interface InvitationRequest
  extends Pick<InvitationRecord, "name" | "renews" | "scopes" | "createdBy" | keyof Budget> {
  readonly expiresHours: number;
}

/** The coordinator to which an invited crawler connects, and whose releases it runs. */
export interface InvitingCoordinator {
  /** `wss://HOST/crawler`, or `ws://` on loopback only. */
  readonly coordinatorUrl: string;
  readonly certificatePin: string | null;
  readonly releaseKeys: readonly string[];
  /** How many keys must sign together to change who may sign releases. */
  readonly releaseThreshold: number;
  /** The release with which a crawler starts; null if none is offered to all, so that the crawler waits for one. */
  readonly firstRelease: string | null;
}

export interface IssuedInvitation
  extends InvitingCoordinator,
    Pick<InvitationRecord, "invitationId" | "name" | "renews" | "expiresAt"> {
  /** Shown only once, because it is stored only as a hash. */
  readonly token: string;
  readonly commands: JoinCommands;
}

/**
 * Two commands to choose from. Both read the token from standard input, because an argument would stay in the shell's
 * history and the process list.
 */
interface JoinCommands {
  /** Needs only Node.js. */
  readonly download: string;
  /** Needs nearcrawl to be installed. */
  readonly installed: string;
}

/** Minimum, maximum and default lifetime of an invitation: an hour, a month and three days. */
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

/** The audit log's entry. It does not contain the token. */
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

/** Says which release keys the invitation pins, and how many must sign together. */
export function pinnedKeyWords({
  releaseKeys,
  releaseThreshold,
}: Pick<IssuedInvitation, "releaseKeys" | "releaseThreshold">): string {
  return releaseThreshold === 1
    ? releaseKeys.join(" or ")
    : `those whom ${releaseThreshold} of ${releaseKeys.join(", ")} name`;
}

export function firstReleaseWords({ firstRelease }: Pick<IssuedInvitation, "firstRelease">): string {
  return firstRelease === null
    ? "No release is offered to all yet, so it will wait until one is: nearcrawl release list, then nearcrawl release stage VERSION --to all."
    : `It starts with release ${firstRelease}.`;
}

/** The file comes from the coordinator with the pinned key; curl accepts no other. */
function joinCommands(
  { coordinatorUrl, certificatePin }: Pick<InvitingCoordinator, "coordinatorUrl" | "certificatePin">,
  invitationId: number,
): JoinCommands {
  // The number shows on the operator's page that the command is in use. It grants nothing.
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

/** Converts base64url for curl, which needs padded base64 with + and /. */
const plainBase64 = (text: string) => Buffer.from(text, "base64url").toString("base64");
