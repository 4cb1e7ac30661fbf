/** API schemas of opt-outs and complaints. */
import { z } from "zod";
import { type ApiOperations, answer, dateTime, get, orNull, record } from "../../web/api-operation.ts";

const optOutScopes = ["url", "prefix", "host", "subdomains", "network"] as const;
export type OptOutScope = (typeof optOutScopes)[number];

export const optOutScope = z
  .enum(optOutScopes)
  .describe(
    "url: one URL; prefix: a URL with what is below it; host: one host; subdomains: with those below it; network.",
  );

const optOutState = z.enum(["waiting", "unconfirmed", "confirmed", "lifted", "lapsed"]);

const covered = {
  hosts: z.int().describe("Hosts of the frontier that it covers."),
  urls: z.int().describe("Their URLs that it covers."),
  pages: z.int().describe("Pages in the index."),
};

export const fleetOptOut = record("FleetOptOut", {
  optOutId: z.int(),
  target: z
    .string()
    .describe(
      "By scope: https://host/page, https://host/part/*, https://host/*, a site's name, or a network.",
    ),
  scope: optOutScope,
  site: orNull(z.string(), "The host that it is of, which confirms it; null: a network."),
  kind: z.enum(["site", "network"]),
  state: optOutState,
  source: z.enum(["form", "operator"]),
  token: z.string(),
  words: z.string(),
  replyTo: z.string().nullable(),
  requester: z.string().nullable(),
  createdAt: dateTime(),
  inForceAt: dateTime().nullable(),
  lapsesAt: dateTime().nullable(),
  deletesAt: orNull(
    dateTime(),
    "From then on its pages are deleted; until then they are hidden. null: they are not deleted.",
  ),
  confirmedAt: dateTime().nullable(),
  confirmedBy: z.enum(["site", "operator"]).nullable(),
  endedAt: dateTime().nullable(),
  endingWords: z.string(),
  erasedAt: orNull(dateTime(), "When its page was erased, not merely deleted from the index."),
  ...covered,
});

export const optOutReport = record("OptOutReport", {
  target: z.string().describe("What opted out, by its scope."),
  kind: z.enum(["site", "network"]),
  scope: z.enum(optOutScopes),
  state: z.enum(["unconfirmed", "confirmed"]),
  since: dateTime(),
  lapsesAt: orNull(dateTime(), "An unconfirmed one ends then."),
});

export const complaintLine = record("ComplaintLine", {
  complaintId: z.int(),
  target: z.string(),
  at: dateTime(),
  open: z.boolean(),
});

export const optOutPreview = record("OptOutPreview", {
  target: z.string(),
  scope: optOutScope,
  ...covered,
  dueUrls: z.int().describe("URLs that are due."),
  wide: orNull(z.string(), "Why removePages has to say how many pages go; null: it need not."),
  known: z
    .strictObject({ optOutId: z.int(), state: optOutState, deletesAt: dateTime().nullable() })
    .nullable()
    .describe("The open opt-out of just that."),
});

export const erasedPage = record("ErasedPage", {
  optOutId: z.int().describe("The opt-out that keeps the URL out."),
  host: z.string(),
  urlDigest: z.string().describe("SHA-256 of the URL with https:, hex: what the audit log names it by."),
  rows: z.record(z.string(), z.int()).describe("Rows that went or were cleared, by table."),
});

export const fleetOptOuts = record("FleetOptOuts", { optOuts: z.array(fleetOptOut) });

export const deeds = z.strictObject({
  since: dateTime(),
  hosts: z.int().describe("Hosts of the frontier that belong to it; at most 2,000 are counted."),
  requests: z.int(),
  mostInAnHour: z.int().describe("Requests within one clock hour (UTC), all hosts and crawlers together."),
  bytes: z.number(),
  firstAt: dateTime().nullable(),
  lastAt: dateTime().nullable(),
  measurements: z
    .int()
    .describe("Times that a crawler measured how far away it is: a HEAD, a TCP connect or a ping each."),
  crawlers: z
    .array(
      z.strictObject({
        name: z.string(),
        address: z.string().nullable(),
        place: z.string().nullable(),
        contact: orNull(z.string(), "Of the partner who hosts it, as stated by the crawler."),
        requests: z.int(),
        lastAt: dateTime(),
      }),
    )
    .describe("Crawlers that sent requests, the busiest first."),
  answers: z
    .array(z.strictObject({ outcome: z.string(), status: z.int().nullable(), requests: z.int() }))
    .describe("What it answered, the most frequent first."),
  robots: z.record(z.string(), z.int()).describe("Hosts by the last state of their robots.txt."),
  crawlDelayMs: orNull(z.number(), "The longest that any of its hosts requests."),
  backOffMs: orNull(z.number(), "The longest after a 429 or 503."),
  atWork: z.array(z.string()).describe("Crawlers that held leases on it."),
});

export const fleetComplaint = record("FleetComplaint", {
  complaintId: z.int(),
  target: z.string(),
  source: z.enum(["form", "operator"]),
  reporter: z.string(),
  words: z.string(),
  requester: z.string().nullable(),
  createdAt: dateTime(),
  deeds: deeds.describe("Our requests to the target in the 24 hours before."),
  closedAt: dateTime().nullable(),
  closingWords: z.string().nullable(),
  answer: z.string().describe("A paragraph to forward as is.").optional(),
});

export const fleetComplaints = record("FleetComplaints", { complaints: z.array(fleetComplaint) });

const fleetAddresses = record("FleetAddresses", {
  synctoken: z.string().describe("Changes whenever a prefix is added or removed."),
  creationTime: dateTime(),
  prefixes: z.array(
    z.union([z.strictObject({ ipv4Prefix: z.string() }), z.strictObject({ ipv6Prefix: z.string() })]),
  ),
});

const keyDirectory = record("KeyDirectory", {
  keys: z.array(
    z.strictObject({
      kty: z.enum(["OKP"]),
      crv: z.enum(["Ed25519"]),
      kid: z.string().describe("The JWK thumbprint (RFC 7638)."),
      x: z.string(),
      use: z.enum(["sig"]),
      nbf: z
        .int()
        .optional()
        .describe("Published since, in seconds since 1970; absent for the identity of an older crawler."),
      exp: z.int().optional().describe("No signature is good for longer."),
    }),
  ),
});

const agentCard = record("SignatureAgentCard", {
  client_id: z.string().describe("Where this card is."),
  client_name: z.string(),
  client_uri: z.string(),
  contacts: z.array(z.string()).optional(),
  jwks_uri: z.string().optional().describe("Absent if requests are not signed."),
  web_bot_auth: z.strictObject({
    "expected-user-agent": z.string(),
    "rfc9309-product-token": z.string(),
    "rfc9309-compliance": z.boolean(),
    trigger: z.enum(["crawler"]),
    purpose: z.string(),
    "targeted-content": z.string(),
    "rate-control": z.string(),
    "rate-expectation": z.string().optional(),
    "known-urls": z.array(z.string()),
    ips_uri: z.string().describe("The fleet's addresses (JAFAR)."),
  }),
});

export const contactApi = {
  fleetAddresses: {
    ...get("/about-crawler/addresses.json", null),
    navigation: {
      group: "Sites",
      order: 62,
      entry: "Opt-outs",
      tab: "About this crawler",
      path: "/about-crawler",
    },
    summary:
      "Public addresses that crawlers connect from, or did within a week, except where their partners object",
    answers: {
      200: {
        description: "One prefix per address",
        schema: fleetAddresses,
        example: {
          synctoken: "hdqo4dqSbcMWw1Evc2ytSw",
          creationTime: "2026-03-01T12:00:00Z",
          prefixes: [{ ipv4Prefix: "192.0.2.17/32" }, { ipv6Prefix: "2001:db8::17/128" }],
        },
        type: "application/jafar+json",
      },
    },
  },
  keyDirectory: {
    ...get("/.well-known/http-message-signatures-directory", null),
    summary:
      "Public keys by which signed requests of the fleet are verified (Web Bot Auth, RFC 9421). If " +
      "requests are signed, so is the answer, with a coordinator key that it contains",
    answers: {
      200: {
        description: "A JSON Web Key Set",
        schema: keyDirectory,
        example: {
          keys: [
            {
              kty: "OKP",
              crv: "Ed25519",
              kid: "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k",
              x: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
              use: "sig",
              nbf: 1772366400,
              exp: 1775563200,
            },
          ],
        },
        type: "application/http-message-signatures-directory+json",
      },
    },
  },
  signatureAgentCard: {
    ...get("/.well-known/signature-agent-card", null),
    summary:
      "Who crawls, for what, how fast, and by which keys it is known (Signature Agent Card); 404 with " +
      "the reason if sites cannot reach the coordinator by https",
    answers: { 200: answer(agentCard, "The card") },
  },
  securityTxt: {
    ...get("/.well-known/security.txt", null),
    summary: "Where to report a security problem (RFC 9116); 404 with the reason if no contact is set",
    answers: {
      200: {
        description: "Lines of names and values",
        schema: z.string(),
        example:
          "Contact: mailto:crawl@example.org\nExpires: 2026-05-30T00:00:00Z\nPreferred-Languages: " +
          "en\nCanonical: https://crawl.example.org/.well-known/security.txt\n",
        type: "text/plain",
      },
    },
  },
} satisfies ApiOperations;
