/** The API that site owners meet: the fleet's addresses and keys, and the forms of objection. */
import { z } from "zod";
import { type ApiOperations, dateTime } from "../web/api-operation.ts";

const formError = z
  .strictObject({ error: z.strictObject({ status: z.int(), message: z.string() }) })
  .meta({ id: "FormError" });

const optOutTaken = z
  .strictObject({
    site: z.string(),
    state: z
      .enum(["waiting", "unconfirmed", "confirmed"])
      .describe(
        "waiting: takes effect when it is confirmed, since too many came in a day, or more than 100 hosts, or several hosts with more than 1,000 indexed pages, lie below it. A public suffix (publicsuffix.org) or a network is answered with 400.",
      ),
    createdAt: dateTime(),
    lapsesAt: dateTime().nullable(),
    confirmation: z
      .strictObject({ type: z.enum(["TXT"]), name: z.string(), value: z.string() })
      .describe("The DNS record by which the site confirms it."),
  })
  .meta({ id: "OptOutTaken" });

const reportTaken = z.strictObject({ complaintId: z.int(), target: z.string() }).meta({ id: "ReportTaken" });

const fleetAddresses = z
  .strictObject({
    synctoken: z.string().describe("Another one whenever a prefix comes or goes."),
    creationTime: dateTime(),
    prefixes: z.array(
      z.union([z.strictObject({ ipv4Prefix: z.string() }), z.strictObject({ ipv6Prefix: z.string() })]),
    ),
  })
  .meta({ id: "FleetAddresses" });

const keyDirectory = z
  .strictObject({
    keys: z.array(
      z.strictObject({
        kty: z.enum(["OKP"]),
        crv: z.enum(["Ed25519"]),
        kid: z.string().describe("The JWK thumbprint (RFC 7638)."),
        x: z.string(),
        use: z.enum(["sig"]),
      }),
    ),
  })
  .meta({ id: "KeyDirectory" });

export const contactApi = {
  fleetAddresses: {
    method: "get",
    path: "/about-crawler/addresses.json",
    needs: null,
    summary:
      "Public addresses that crawlers are, or were within a week, seen to connect from, save those whose partner wishes otherwise",
    answers: {
      200: {
        description: "One prefix for each address",
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
    method: "get",
    path: "/.well-known/http-message-signatures-directory",
    needs: null,
    summary:
      "Public keys by which signed requests of the fleet are verified (Web Bot Auth, RFC 9421); the answer itself is not signed, since the private keys never leave the crawlers",
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
            },
          ],
        },
        type: "application/http-message-signatures-directory+json",
      },
    },
  },
  optOut: {
    method: "post",
    path: "/about-crawler/opt-out",
    needs: null,
    summary:
      "Take a site, with everything below it, out of the crawl and the search. A browser gets a page, Accept: application/json gets JSON.",
    body: {
      schema: z.object({
        site: z.string().max(2048).describe("A host, or a URL of it."),
        reply: z.string().max(200).describe("Where the requester can be reached.").optional(),
        words: z.string().max(2000).describe("Anything that the operator should know.").optional(),
      }),
      type: "application/x-www-form-urlencoded",
    },
    answers: {
      201: {
        description: "Taken; asked for again, the same",
        schema: optOutTaken,
        example: {
          site: "www.example.org",
          state: "unconfirmed",
          createdAt: "2026-03-01T12:00:00.000Z",
          lapsesAt: "2026-03-31T12:00:00.000Z",
          confirmation: {
            type: "TXT",
            name: "_nearcrawl.www.example.org",
            value: "opt-out=hdqo4dqSbcMWw1Evc2ytSw",
          },
        },
      },
      400: { description: "Something is missing, or cannot be read", schema: formError },
      403: { description: "A browser sent it from another site's page" },
      413: { description: "Longer than 16 KB" },
      429: { description: "Too many forms from this address, or too many reports today" },
    },
  },
  report: {
    method: "post",
    path: "/about-crawler/report",
    needs: null,
    summary: "Report trouble with our requests to a site, an address or a network.",
    body: {
      schema: z.object({
        site: z.string().max(2048).describe("A host, a URL, an address or a range."),
        reply: z.string().max(200).describe("Who reports, and where to answer."),
        words: z.string().max(2000).describe("What happened."),
      }),
      type: "application/x-www-form-urlencoded",
    },
    answers: {
      201: {
        description: "Taken, with what was done to the target in the last 24 hours",
        schema: reportTaken,
        example: { complaintId: 12, target: "www.example.org" },
      },
      400: { description: "Something is missing, or cannot be read", schema: formError },
      403: { description: "A browser sent it from another site's page" },
      413: { description: "Longer than 16 KB" },
      429: { description: "Too many forms from this address, or too many reports today" },
    },
  },
} satisfies ApiOperations;
