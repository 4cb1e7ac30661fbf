/** API schemas of related coordinators and of the exchange between them. */
import { z } from "zod";
import { childMessage, exchangedUrl, maxExchangedUrls, parentAnswer } from "#protocol/exchange";
import { type ApiOperations, answer, dateTime, errorAnswer } from "../../web/api-operation.ts";

export const relatedCoordinator = z
  .strictObject({
    name: z.string().describe("Of the parent: its address."),
    coordinatorId: z.string().nullable(),
    owns: z
      .array(z.string())
      .describe("Of a child: the domain sets that it owns; of the parent: what this coordinator owns."),
    state: z.enum(["connected", "silent", "refused", "never"]),
    contactedAt: dateTime().nullable(),
    failingSince: dateTime().nullable(),
    failure: z.string().nullable().describe("Why it is unreachable or refused."),
    waiting: z.number().describe("URLs that wait for it, including those in transit."),
    exchanges: z.number(),
    urlsSent: z.number().describe("Acknowledged."),
    urlsReceived: z.number(),
    urlsDropped: z.number().describe("Given up because too many waited, or because they were no URLs."),
    createdAt: dateTime(),
    createdBy: z.string(),
  })
  .meta({ id: "RelatedCoordinator" });

export const coordinators = z
  .strictObject({
    coordinatorId: z.string().nullable().describe("Of this coordinator; null: none has started here yet."),
    parent: relatedCoordinator.nullable().describe("Null: what no child owns is this coordinator's own."),
    above: z.array(z.string().meta({ format: "uuid" })).describe("Those above the parent, upward."),
    children: z.array(relatedCoordinator),
    settling: z.boolean().describe("Hosts and URLs are being handed over after a change of claims."),
  })
  .meta({ id: "Coordinators" });

/**
 * In the exchange, URLs have a loose schema, so that invalid ones are reported by position. The API documents each
 * URL in full.
 */
const urls = z.array(exchangedUrl).max(maxExchangedUrls);
const message = childMessage.extend({ urls }).meta({ id: "ChildMessage" });
const answered = parentAnswer.extend({ urls }).meta({ id: "ParentAnswer" });

export const exchangeApi = {
  exchangeUrls: {
    method: "post",
    path: "/api/coordinators/exchange",
    needs: null,
    summary: "Exchange between coordinators: URLs up, URLs down",
    description:
      "For child coordinators, with the key of their invitation (`Authorization: Bearer ncc_…`). " +
      "Numbers rise in each direction; what was sent before is sent again until `received` covers it, " +
      "and counts once.",
    body: {
      schema: message,
      example: {
        version: 1,
        coordinatorId: "7a2d94c8-1b0e-4d57-8f57-5a1f8c3f2e22",
        owns: [".gr", ".cy"],
        linkId: "0d1e5a9b-77c4-4d0a-b1c5-6f1f5d0a3333",
        received: 183002,
        urls: [
          {
            number: 96111,
            url: "https://www.example.org/ferry",
            depth: 2,
            redirects: 0,
            lists: 0,
            hops: 0,
            links: 3,
          },
        ],
      },
    },
    answers: {
      200: answer(answered, "Taken"),
      400: errorAnswer("The message is not as described"),
      401: errorAnswer("The key is invalid"),
      409: errorAnswer(
        "Refused: a cycle of coordinators, claims that overlap or reach too far, another software version",
      ),
      429: errorAnswer(
        "A message of this child is being processed, or too many failures came from this address",
      ),
    },
  },
} satisfies ApiOperations;
