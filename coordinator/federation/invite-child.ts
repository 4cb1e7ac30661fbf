/** An operator invites a coordinator below this one: a key that is shown once, as the lines of the child's settings. */

import type { Change } from "#core/audit";
import { crawlerName } from "#protocol/invitation";
import type { Secrets } from "../crawlers/admit-crawler.ts";
import type { CoordinatorStore } from "./exchange-ports.ts";

/** As crawlers are named. */
export const childName = crawlerName;

export interface InviteChildPorts {
  readonly coordinators: Pick<CoordinatorStore, "invite">;
  readonly secrets: Secrets;
  /** Where this coordinator is reached; null: none has started here yet. */
  readonly place: () => Promise<{ readonly webUrl: string; readonly certificatePin: string | null } | null>;
}

/** What goes into the child's file, but for what it is to own. */
export interface InvitedChild {
  readonly name: string;
  readonly parent: { readonly url: string; readonly key: string; readonly certificatePin: string | null };
}

export type InviteFault = "name-taken" | "no-place";

export async function inviteChild(
  name: string,
  ports: InviteChildPorts,
  by: { readonly createdBy: string; readonly now: Date },
): Promise<InvitedChild | InviteFault> {
  const place = await ports.place();
  if (place === null) return "no-place";
  const { secret: key, hash: keyHash } = ports.secrets.make("ncc_");
  if (!(await ports.coordinators.invite({ name, keyHash, ...by }))) return "name-taken";
  const isSecure = place.webUrl.startsWith("https:");
  return { name, parent: { url: place.webUrl, key, certificatePin: isSecure ? place.certificatePin : null } };
}

export const inviteFaultWords = (name: string): Readonly<Record<InviteFault, string>> => ({
  "name-taken": `There is a coordinator "${name}" already: take another name, or remove it first.`,
  "no-place": "No coordinator has started with this database, so it is not known where children reach it.",
});

/** The file's part as a person pastes it; `owns` is an example to change. */
export function invitedSettings({ parent }: InvitedChild): string {
  return JSON.stringify({ parent: { ...parent, owns: [".gr"] } }, null, 2);
}

export function childInvited({ name }: InvitedChild): Change {
  return {
    action: "coordinator-invited",
    target: name,
    words: `The coordinator ${name} may join below this one.`,
  };
}

export function childRemoved(name: string): Change {
  const words = `The coordinator ${name} is no child any more; what waits for it goes where it belongs now.`;
  return { action: "coordinator-removed", target: name, words };
}
