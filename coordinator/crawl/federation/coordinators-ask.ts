/** The /coordinators page: this coordinator's parent and children, what waits for each, and inviting and removing children. */
import { z } from "zod";
import type { Secrets } from "#core/access-types";
import { howMany, instantWords, whenWords } from "#core/format";
import { crawlerName } from "#protocol/invitation";
import { code, column, form, lead, picture, present, table, warning } from "../../ask/document.ts";
import { Fault, operationsOf } from "../../ask/operation.ts";
import { record, type ToldOf, typedConfirmation } from "../../web/api-operation.ts";
import { onlyOperators } from "../../web/components.ts";
import { sentence } from "../../web/format.ts";
import { html } from "../../web/html.ts";
import { coordinators as coordinatorsSchema } from "./federation-api.ts";
import type { CoordinatorStore, Coordinators, RelatedCoordinator } from "./related-store.ts";

const invitedCoordinator = record("InvitedCoordinator", {
  name: z.string(),
  parent: z.strictObject({
    url: z.string(),
    key: z.string(),
    certificatePin: z
      .string()
      .nullable()
      .describe("SHA-256 of the TLS key, base64url; null: the public authorities decide."),
  }),
});

interface InviteChildPorts {
  readonly coordinators: Pick<CoordinatorStore, "invite">;
  readonly secrets: Secrets;
  /** This coordinator's address; null if none has started yet. */
  readonly place: () => Promise<{ readonly webUrl: string; readonly certificatePin: string | null } | null>;
}

const { get, post } = operationsOf<InviteChildPorts & { readonly coordinators: CoordinatorStore }>();

const inviteCoordinator = post({
  ...{ path: "/api/coordinators/invite", needs: "fleet-write" },
  label: "Invite",
  summary: "Invite a child coordinator",
  description:
    "The key is shown only in this answer; it goes into the settings of the joining coordinator, with what that will own.",
  input: z.object({
    name: z.string().trim().max(200).meta({
      title: "Name",
      description: "Its name here: up to 63 lower-case letters, digits, dots, dashes, underscores.",
      example: "athens",
    }),
  }),
  output: invitedCoordinator,
  example: { name: "athens" },
  answer: { status: 201, description: "Invited" },
  faults: {
    409: "The name is taken, or no coordinator has started here yet",
    422: "An invalid name",
  },
  command: {
    ...{
      name: "coordinators invite",
      says: "create a child's key and print it once, for its settings",
      takes: "name",
    },
  },
  run: async ({ input: { name }, ports, actor, now }) =>
    await inviteChild(name, ports, { createdBy: actor.name, now }),
  // The key is kept out of the audit log.
  change: ({ name }) => ({
    ...{ action: "coordinator-invited", target: name },
    words: `The coordinator ${name} may join below this one.`,
  }),
  view: ({ name, parent }) => ({
    title: `${name} may join`,
    nodes: [
      lead(html`Copy the key now: it is <strong>shown only once</strong>. Put these lines into the settings of the joining coordinator
(<code>nearcrawl coordinator --config FILE</code>); <code>owns</code> names its domains.`),
      // The domain in `owns` is only an example.
      code(JSON.stringify({ parent: { ...parent, owns: [".gr"] } }, null, 2)),
      picture(html`<p><a href="/coordinators">Back to the coordinators</a></p>`),
    ],
  }),
});

/** Throws a Fault that says why the invitation was refused. */
export async function inviteChild(
  name: string,
  { place: placeOf, secrets, coordinators }: InviteChildPorts,
  by: { readonly createdBy: string; readonly now: Date },
): Promise<ToldOf<typeof invitedCoordinator>> {
  if (!crawlerName.safeParse(name).success) throw new Fault(422, nameFault, "Not invited");
  const place = await placeOf();
  if (place === null) throw new Fault(409, notStarted, "Not invited");
  const { secret: key, hash: keyHash } = secrets.make("ncc_");
  if (!(await coordinators.invite({ name, keyHash, ...by }))) {
    const words = `There is a coordinator "${name}" already: choose another name, or remove it first.`;
    throw new Fault(409, words, "Not invited");
  }
  const certificatePin = place.webUrl.startsWith("https:") ? place.certificatePin : null;
  return { name, parent: { url: place.webUrl, key, certificatePin } };
}

const nameFault =
  "name: is 1 to 63 lower-case letters, digits, dots, dashes and underscores, and begins with a letter or digit";
const notStarted = "No coordinator has started with this database, so the address for children is not known.";

const removeCoordinator = post({
  ...{ path: "/api/coordinators/{name}/remove", needs: "fleet-write" },
  summary: "Remove a child coordinator",
  description: "Its key stops working; URLs that wait for it are rerouted.",
  input: z.object({
    name: z.string().describe("As it was invited."),
    confirmation: typedConfirmation("The child's name again"),
  }),
  output: record("RemovedCoordinator", { name: z.string(), removed: z.boolean() }),
  example: {},
  answer: { description: "Removed" },
  faults: { 404: "There is no child of this name", 422: "The confirmation is not the child's name" },
  command: {
    ...{ name: "coordinators remove", says: "revoke its key; URLs that wait for it are rerouted" },
    follows: "the URLs that wait for it are rerouted, and its key stops working.",
  },
  run: async ({ input: { name }, ports }) => {
    if (await ports.coordinators.remove(name)) return { name, removed: true };
    throw new Fault(404, `There is no child "${name.slice(0, 80)}".`);
  },
  change: ({ name }) => ({
    ...{ action: "coordinator-removed", target: name },
    words: `The coordinator ${name} was removed; URLs that wait for it are rerouted.`,
  }),
});

type Related = RelatedCoordinator & { readonly isParent: boolean };

const coordinators = get({
  ...{ path: "/api/coordinators", needs: "fleet-read" },
  navigation: { group: "Fleet", order: 42, entry: "Versions", tab: "Coordinators" },
  summary: "The parent coordinator, the children, and what waits for each",
  input: z.object({}),
  output: coordinatorsSchema,
  command: {
    name: "coordinators list",
    says: "the parent and the children: when each was last seen, and what waits for it",
    group: {
      says: "coordinators above and below this one: who owns which domains, and what waits",
      help: `

A child is a coordinator whose settings name a parent: {"parent": {"url", "key", "owns": [".gr"]}}. It sends up what
it does not own, and gets what it owns.

Examples:
  nearcrawl coordinators invite athens
  nearcrawl coordinators remove athens`,
    },
  },
  run: async ({ ports, now }) => await ports.coordinators.list(now),
  view: (all, { viewer, now }) => {
    const away = parentAwayWords(all.parent);
    const parents = all.parent === null ? [] : [{ ...all.parent, isParent: true }];
    return {
      title: "Coordinators",
      nodes: present([
        lead(standingWords(all)),
        away !== null && warning(sentence(away)),
        table<Related>({
          label: "Related coordinators",
          rows: [...parents, ...all.children.map((one) => ({ ...one, isParent: false }))],
          columns: [
            column("name", "Coordinator", ({ name }) => name, {
              more: ({ isParent }) => (isParent ? "parent" : "child"),
            }),
            column("owns", "Owns", (one) => (one.isParent ? "everything else" : ownsWords(one))),
            column("state", "State", (one) => sentence(linkWords(one, now)), { value: ({ state }) => state }),
            column("waiting", "URLs waiting", ({ waiting }) => waiting, { unit: "count" }),
            column("urls_sent", "Sent", ({ urlsSent }) => urlsSent, { unit: "count" }),
            column("urls_received", "Received", ({ urlsReceived }) => urlsReceived, { unit: "count" }),
            column("urls_dropped", "Given up", ({ urlsDropped }) => urlsDropped, { unit: "count" }),
          ],
          empty: [
            "No related coordinators.",
            "This one crawls whatever it finds. Invite a coordinator below it to hand over domains.",
          ],
          actions: ({ name, isParent }) =>
            isParent
              ? []
              : [{ operation: removeCoordinator, path: { name }, label: `Remove ${name}`, typed: name }],
        }),
        form({ operation: inviteCoordinator, title: "Invite a child coordinator" }),
        picture(onlyOperators(viewer.actor, "fleet-write", "Inviting and removing coordinators")),
      ]),
    };
  },
});

export const coordinatorOperations = { coordinators, inviteCoordinator, removeCoordinator };

function linkWords(related: RelatedCoordinator, now: Date): string {
  const { state, failure, failingSince, contactedAt } = related;
  const since = failingSince === null ? "" : `, since ${instantWords(failingSince)}`;
  if (failure !== null) return `${failure}${since}`;
  if (contactedAt === null) return "never connected";
  const spoke = `last seen ${whenWords(contactedAt, now)}`;
  return state === "silent" ? `not responding, ${spoke}` : `connected, ${spoke}`;
}

function ownsWords({ owns }: RelatedCoordinator): string {
  if (owns.length === 0) return "nothing yet";
  const shown = owns.slice(0, 8).join(", ");
  return owns.length > 8 ? `${shown} and ${owns.length - 8} more` : shown;
}

/** Describes this coordinator's position in one or two sentences. */
function standingWords({ parent, children, above, settling }: Coordinators): string {
  const up =
    parent === null
      ? "Top-level coordinator. It owns whatever no child owns."
      : `Its parent is ${parent.name}; it owns ${ownsWords(parent)}, and sends the rest up.`;
  const higher = above.length === 0 ? "" : ` Above the parent: ${howMany(above.length, "coordinator")}.`;
  const down = children.length === 0 ? "" : ` Below it: ${howMany(children.length, "coordinator")}.`;
  const moving = settling ? " Ownership has changed: hosts are being handed over." : "";
  return `${up}${higher}${down}${moving}`;
}

/** Says what it means that the parent is absent; null if it is present. */
function parentAwayWords(parent: RelatedCoordinator | null): string | null {
  if (parent === null || parent.failure === null) return null;
  const since = parent.failingSince === null ? "" : ` since ${instantWords(parent.failingSince)}`;
  return (
    `The parent has accepted nothing${since} (${parent.failure}). This coordinator keeps crawling ` +
    `its own hosts. Waiting to be sent: ${howMany(parent.waiting, "URL")} of other coordinators.`
  );
}
