/** Invitations: making them, showing them once, listing them, following them to the first page, and withdrawing them. */
import { z } from "zod";
import { mayDo } from "#core/actor";
import { howMany } from "#core/format";
import { keyScopes } from "#protocol/identity";
import { crawlerName } from "#protocol/invitation";
import { code, column, facts, form, lead, list, picture, section, table } from "../../ask/document.ts";
import { type Document, Fault, operationsOf } from "../../ask/operation.ts";
import type { InvitationRecord } from "../../place/crawlers/identity.ts";
import {
  firstReleaseWords,
  type IssuedInvitation,
  invitationHours,
  invitationMade,
  issueInvitation,
  pinnedKeyWords,
} from "../../run/access/invitations.ts";
import { bytesPerDay, dateTime, orNull, pagesPerDay, record } from "../../web/api-operation.ts";
import { pageScript } from "../../web/assets.ts";
import { crawlerPath, fact, small } from "../../web/components.ts";
import { crawlerLink, instant } from "../../web/format.ts";
import { html } from "../../web/html.ts";
import type { PageViewer } from "../../web/page-frame.ts";
import { noCrawler, noCrawlerWords } from "./crawler-deeds-ask.ts";
import type { FleetPorts } from "./fleet-store.ts";
import { type InvitationProgress, progressSchema } from "./invitation-steps.ts";

const { get, post } = operationsOf<FleetPorts>();

const scopes = z.array(
  z.enum(keyScopes).meta({
    "x-enumDescriptions": { probe: "measure distances", crawl: "be given pages, and send results" },
  }),
);
const numbered = {
  number: z.int().min(0).max(2_147_483_647).meta({ description: "As listed.", example: 7 }),
};

const withdrawInvitation = post({
  ...{ path: "/api/fleet/invitations/{number}/revoke", needs: "fleet-write" },
  summary: "Withdraw an invitation; a crawler that has joined with it stays",
  input: z.object(numbered),
  output: z.strictObject({ revoked: z.int() }),
  faults: { 404: "It can no longer be used, or does not exist" },
  command: { name: "fleet revoke-invitation" },
  run: async ({ input: { number }, ports, now }) => {
    const revoked = await ports.invitations.revoke({ invitationId: number }, now);
    if (revoked > 0) return { revoked, number };
    throw new Fault(404, `Invitation ${number} does not exist, or can no longer be used.`);
  },
  told: ({ revoked }) => ({ revoked }),
  said: ({ revoked }) =>
    `Withdrawn: ${howMany(revoked, "invitation")}. A crawler that has joined with it stays.`,
  change: ({ number }) => ({
    ...{ action: "invitation-revoked", target: `invitation ${number}` },
    words: `Invitation ${number} was withdrawn.`,
  }),
});

const bytes = bytesPerDay.nullable().default(null);
const pages = pagesPerDay.nullable().default(null);

const invite = post({
  ...{ path: "/api/fleet/invitations", page: "/fleet/invite", needs: "fleet-write" },
  label: "Invite",
  summary: "Invite a crawler",
  description: "The token is shown only in this answer; only a hash of its secret is kept.",
  input: z.object({
    name: crawlerName.meta({
      title: "Crawler name",
      description:
        "Its permanent name in the fleet, such as athens or uni-athens.2: up to 63 lower-case letters, digits, dots, dashes, " +
        "underscores.",
    }),
    renews: z.boolean().default(false).describe("A new identity for a crawler that is there."),
    pagesPerDay: pages.meta({
      title: "Maximum pages per day",
      description: "Empty: as many as the partner allows. You can change it later.",
    }),
    bytesPerDay: bytes.meta({
      title: "Maximum bytes per day, such as 2.5 GB",
      description: "Fetched over the wire. Empty: as the partner allows.",
    }),
    scopes: scopes
      .min(1)
      .max(keyScopes.length)
      .default([...keyScopes])
      .meta({
        title: "What it may do",
        description: "Both by default.",
      }),
    expiresHours: z
      .number()
      .min(invitationHours.least)
      .max(invitationHours.most)
      .default(invitationHours.usual)
      .meta({
        title: "Valid for (hours)",
        description: `From ${invitationHours.least} to ${invitationHours.most}; it works once.`,
      }),
  }),
  output: record("IssuedInvitation", {
    invitationId: z.int(),
    name: z.string(),
    renews: z.boolean(),
    coordinatorUrl: z.string(),
    certificatePin: orNull(
      z.string(),
      "SHA-256 of the SubjectPublicKeyInfo, base64url; null: public authorities vouch for the coordinator.",
    ),
    releaseKeys: z.array(z.string()).min(1),
    releaseThreshold: z.int().min(1).describe("How many of these keys together say who signs releases."),
    firstRelease: orNull(
      z.string(),
      "The release that the crawler starts with; null: none is offered to all yet, and it waits for one.",
    ),
    expiresAt: dateTime(),
    token: z.string(),
    commands: record("JoinCommands", {
      download: z.string().describe("Needs Node.js and nothing else; reads the token from standard input."),
      installed: z.string().describe("Where nearcrawl is installed; reads the token from standard input."),
    }),
  }),
  example: { name: "athens", pagesPerDay: 50000, expiresHours: 72 },
  answer: { status: 201 },
  faults: {
    404: noCrawlerWords,
    409: "The name is taken, the public address of the coordinator is not known, or there is no release key to pin",
    415: "The body is not application/json",
  },
  run: async ({ input, ports, actor, now }) => {
    const request = { ...input, createdBy: actor.name };
    const coordinator = await ports.coordinator();
    const issued = await issueInvitation(request, { ...ports, coordinator }, now);
    if (issued === "no-such-crawler") throw noCrawler(input.name);
    if (issued !== "name-taken") return { ...issued, request };
    const words = `A crawler named ${input.name} already exists. To reissue its credentials, open its page (API: "renews": true).`;
    throw new Fault(409, words, "The name is taken");
  },
  told: ({ request: _, ...issued }) => issued,
  change: ({ request, ...issued }) => invitationMade(issued, request),
  view: invitedDocument,
});

export const inviteBounds = get({
  ...{ path: "/api/fleet/invite", needs: "fleet-write" },
  summary: "What an invitation may contain",
  input: z.object({
    renews: crawlerName.optional().describe("The page: for this crawler, which is there already."),
  }),
  output: record("InviteBounds", {
    scopes,
    expiresHours: z.strictObject({ least: z.int(), most: z.int(), usual: z.int() }),
  }),
  run: async () => ({ scopes: keyScopes, expiresHours: invitationHours }),
  view: (_, { input: { renews: name } }) =>
    name === undefined
      ? {
          title: "Add a partner",
          nodes: [
            lead(`You get one command to send to your partner. It runs on any machine with Node.js and starts a crawler that only connects
outwards and keeps to the limits that its host sets.`),
            form({ operation: invite, title: "Its crawler", without: ["renews"] }),
          ],
        }
      : {
          title: `Reissue the credentials of ${name}`,
          nodes: [
            lead(`For a crawler whose folder was lost or copied, or whose access was revoked. It keeps its subnets; its old identity and keys end
when it joins again.`),
            form({
              ...{ operation: invite, title: "What it may do from then on", label: "Reissue" },
              ...{ values: { name, renews: true }, without: ["name", "renews"] },
            }),
          ],
        },
});

const invitations = get({
  ...{ path: "/api/fleet/invitations", needs: "fleet-read" },
  navigation: { group: "Fleet", order: 20, entry: "Invitations", also: ["/fleet/invite"] },
  alsoFound: "invite add crawler join partner",
  summary: "Invitations, the latest first",
  input: z.object({}),
  output: record("Invitations", {
    invitations: z.array(
      record("Invitation", {
        invitationId: z.int(),
        name: z.string(),
        renews: z.boolean(),
        scopes,
        pagesPerDay: z.int().nullable(),
        bytesPerDay: z.int().nullable(),
        createdBy: z.string(),
        createdAt: dateTime(),
        expiresAt: dateTime(),
        redeemedAt: dateTime().nullable(),
        revokedAt: dateTime().nullable(),
        state: z.enum(["open", "joining", "joined", "expired", "revoked"]),
      }),
    ),
  }),
  command: { name: "fleet invitations" },
  run: async ({ ports, now }) => ({ invitations: await ports.invitations.list(now) }),
  view: ({ invitations: all }, { viewer }) => ({
    ...{ title: "Invitations", beside: addPartner(viewer) },
    nodes: [
      invitationTable(all, [
        "No invitations yet.",
        html`<a href="/fleet/invite">Add a partner</a>: its crawler joins with one command.`,
      ]),
    ],
  }),
});

export const addPartner = ({ actor }: PageViewer) =>
  mayDo(actor, "fleet-write") && html`<a class="button slim" href="/fleet/invite">Add a partner</a>`;

const stateWords: Readonly<Record<InvitationRecord["state"], string>> = {
  open: "open",
  joining: "used; the crawler has not confirmed its key yet",
  joined: "joined",
  expired: "expired",
  revoked: "withdrawn",
};

export const invitationTable = (
  rows: readonly InvitationRecord[],
  empty: readonly [what: string, then: ReturnType<typeof html>],
) =>
  table<InvitationRecord>({
    ...{ label: "Invitations", rows, empty },
    columns: [
      column("number", "No.", ({ invitationId }) => invitationId, {
        ...{ kind: "number", link: ({ invitationId }) => `/fleet/invitations/${invitationId}` },
      }),
      column("crawler", "Crawler", ({ name, redeemedAt, renews }) =>
        redeemedAt === null && !renews ? name : crawlerLink(name),
      ),
      column("state", "State", ({ state }) => stateWords[state], { value: ({ state }) => state }),
      column("created_at", "Created", ({ createdAt }) => createdAt, {
        more: ({ createdBy }) => `by ${createdBy}`,
      }),
      column("valid_until", "Valid until", ({ expiresAt }) => expiresAt),
      column("pages_per_day", "Pages per day", ({ pagesPerDay: most }) => most, {
        unit: "count",
        none: "partner's limit",
      }),
      column("for", "For", ({ scopes: given, renews }) => {
        const what = given.includes("crawl") ? "crawling" : "measuring only";
        return renews ? `${what}, reissued` : what;
      }),
    ],
    actions: ({ invitationId: number, state }) =>
      state === "open" || state === "joining"
        ? [{ operation: withdrawInvitation, path: { number }, label: `Withdraw no. ${number}` }]
        : [],
  });

/** Short, because somebody is waiting in front of the page. */
const refreshSeconds = 3;

const invitation = get({
  ...{ path: "/api/fleet/invitations/{number}", needs: "fleet-read" },
  summary: "Progress of an invitation",
  description: "Each step from the download to the first page, and what blocks the next.",
  input: z.object(numbered),
  output: progressSchema,
  faults: { 404: "There is no invitation of this number" },
  run: async ({ input: { number }, ports, now }) => await ports.invitationProgress(number, now),
  view: progressDocument,
});

export const invitationOperations = {
  ...{ invitations, invite, inviteBounds, invitation },
  revokeInvitation: withdrawInvitation,
};

/** The live steps: downloaded, checked, joined, running, first page. */
function progressDocument({ invitationId, name, steps, waitsFor, isOver }: InvitationProgress): Document {
  const done = steps.filter(({ isDone }) => isDone).length;
  const isLive = waitsFor !== null && !isOver;
  const said = steps.map(({ words, isDone }) => `${isDone ? "✓" : "·"} ${words}`).join("\n");
  return {
    title: waitsFor === null ? `${name} is crawling` : isOver ? `${name} did not join` : `${name} is joining`,
    beside: html`<a href="/fleet/invitations">Invitations</a>`,
    nodes: [
      lead(
        `Invitation ${invitationId}: ${done} of ${steps.length} steps${isLive ? "; this page updates itself" : ""}.`,
      ),
      picture(
        html`<ol class="steps">${steps.map(
          ({ words, isDone, at }) =>
            html`<li class="${isDone ? "done" : "open"}"><span class="hidden">${isDone ? "Done: " : "Open: "}</span>${words}${
              at !== null && html` ${small(instant(at))}`
            }</li>`,
        )}</ol>`,
        said,
      ),
      waitsFor === null
        ? picture(html`<p><a class="button slim" href="${crawlerPath(name)}">Its page</a></p>`)
        : picture(html`<p class="note" role="status">${waitsFor}</p>`, waitsFor),
    ],
    ...(isLive ? { refreshSeconds } : {}),
  };
}

// The page that is shown only once, to the person who invites.

export function invitedDocument(issued: IssuedInvitation): Document {
  const { invitationId, name, renews, expiresAt, token, commands } = issued;
  const isThe = (text: string) => html`<code class="break">${text}</code>`;
  const installed = ["The command, with nearcrawl installed", isThe(commands.installed)] as const;
  const parts = [
    ["Token", html`<code class="break" id="token">${token}</code>`],
    ["The command, with only Node.js installed", isThe(commands.download)],
    installed,
    ...connectionFacts(issued),
  ] as const;
  return {
    title: renews ? `New credentials for ${name}` : `${name} is invited`,
    nodes: [
      lead(html`Copy it now: the token is <strong>shown only once</strong>; just a hash of it is kept. It works once, until
${instant(expiresAt)}.`),
      section("Send this to the partner", [
        picture(
          html`${pageScript("fleet.js")}<label class="hidden" for="letter">The letter with the command</label>
<textarea class="letter mono" id="letter" readonly rows="18" spellcheck="false">${letter(issued)}</textarea>
<p class="actions"><button class="quiet slim" type="button" data-copy="letter" hidden>Copy the letter</button>
<a class="button quiet slim" href="${mailLink(issued)}">Open as an e-mail without the token</a></p>`,
          code(letter(issued)),
        ),
      ]),
      section("The parts of the letter", [
        picture(
          html`<dl class="facts column">${parts.map(([what, value]) => fact(what, value))}</dl>`,
          facts(installed, ...connectionFacts(issued)),
        ),
      ]),
      section("What happens next", [
        picture(
          html`<p class="actions"><a class="button slim" href="/fleet/invitations/${invitationId}">Watch its progress</a></p>`,
        ),
        list([
          "The partner runs the command as an ordinary user in an empty folder, pastes the token, and starts the crawler.",
          html`It shows on <a href="${crawlerPath(name)}">its page</a> as connected, gets the subnet that it is in, and starts to measure.`,
          "Within minutes it gets the subnets that it is nearest to. Others fetch 15 % of its first 2,000 pages again to compare them.",
          html`If it does not appear: <a href="/fleet/invitations">the invitation</a> says whether the token was used. If interrupted, the command
can be run again on the same folder for three days.`,
        ]),
      ]),
    ],
  };
}

function connectionFacts(
  issued: IssuedInvitation,
): readonly (readonly [string, string | ReturnType<typeof html>])[] {
  const { certificatePin: pin, coordinatorUrl } = issued;
  const anyOrNone = coordinatorUrl.startsWith("ws:")
    ? "none: it is on this machine, so nothing is encrypted"
    : "any that a public CA vouches for";
  return [
    ["Connects to", `${coordinatorUrl} and to nothing else of ours`],
    [
      "Accepts as certificate",
      pin === null ? anyOrNone : html`the key <code class="break">${pin}</code> and no other`,
    ],
    ["Takes releases signed by", html`<code class="break">${pinnedKeyWords(issued)}</code>`],
    ["Runs first", firstReleaseWords(issued)],
  ];
}

function letter({ name, token, commands, expiresAt }: IssuedInvitation): string {
  return `Hello,

here is the invitation for the crawler "${name}". On its machine, as an
ordinary user with Node.js 20.19 or newer, in an empty folder, run:

${commands.download}

It asks for this token: paste it, press Enter, then Ctrl-D.

${token}

The token works once, until ${expiresAt.toISOString().slice(0, 16).replace("T", " ")} UTC; please keep it to
yourself. The crawler only connects outwards, does nothing but measure and
fetch public web pages, and keeps to the limits that you set in its
settings.toml. Its own page, on your machine alone, shows what it does.
`;
}

/** Mail may be read on its way, so the token must be sent in another way. */
function mailLink({ name, commands }: IssuedInvitation): string {
  const body = `In an empty folder, with Node.js 20.19 or newer:\n\n${commands.download}\n\nThe token that it asks for comes to you separately.\n`;
  return `mailto:?subject=${encodeURIComponent(`Your crawler ${name}`)}&body=${encodeURIComponent(body)}`;
}
