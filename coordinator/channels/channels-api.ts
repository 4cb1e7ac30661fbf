/** The API of channels: what it takes and answers. */
import { z } from "zod";
import { type ApiOperations, dateTime, errorAnswer, refusals } from "../web/api-operation.ts";
import { channelBounds } from "./channel.ts";

const channel = z
  .object({
    channelId: z.int(),
    host: z.string(),
    directories: z
      .array(z.string().max(2048))
      .max(50)
      .describe("Each begins and ends with /; / is the whole host."),
    seeds: z.array(z.string().max(2048)).max(200).describe("Crawled whatever include says."),
    include: z
      .array(z.string().max(300))
      .max(50)
      .describe("Patterns of path and query: * is anything, a final $ the end. Empty: everything."),
    exclude: z.array(z.string().max(300)).max(50).describe("Left out, included or not."),
    maxDepth: z.int().nullable().describe("Links from a seed; null: as the scope has it."),
    createdAt: dateTime(),
    expectedPages: z.int().nullable().describe("Pages that the index has of it; null: not counted yet."),
    settled: z
      .boolean()
      .describe("False: URLs that were in the frontier before it are still being brought in line."),
  })
  .meta({ id: "Channel" });

const channels = z.object({ channels: z.array(channel) }).meta({ id: "Channels" });

const url = z.string().min(1).max(2100);
const pattern = z.string().min(1).max(400);
const patterns = z.array(pattern).max(channelBounds.patterns);

export const addChannelBody = z.strictObject({
  prefixes: z
    .array(url)
    .min(1)
    .max(channelBounds.directories)
    .describe("A host, or directories of one host, each ending with /."),
  seeds: z.array(url).max(channelBounds.seeds).default([]).describe("Crawled whatever include says."),
  include: patterns
    .default([])
    .describe("Patterns of path and query: * is anything, a final $ the end. Empty: everything."),
  exclude: patterns.default([]).describe("Left out, included or not."),
  maxDepth: z.int().min(0).max(channelBounds.depth).nullable().default(null),
});

export const channelsApi = {
  channels: {
    method: "get",
    path: "/api/channels",
    needs: "read",
    summary: "What is crawled of parts of hosts",
    description:
      "Needs the scope read where the pages are not open to everybody. A host without a channel is crawled as the scope says. Also as CSV: format=csv.",
    answers: {
      ...refusals,
      200: {
        description: "The answer",
        schema: channels,
        example: {
          channels: [
            {
              channelId: 3,
              host: "www.example.org",
              directories: ["/docs/"],
              seeds: ["https://www.example.org/docs/"],
              include: ["/docs/*.html$"],
              exclude: ["/docs/old/"],
              maxDepth: 5,
              createdAt: "2026-03-01T12:00:00.000Z",
              expectedPages: 1240,
              settled: true,
            },
          ],
        },
      },
    },
  },
  addChannel: {
    method: "post",
    path: "/api/channels",
    needs: "policy-write",
    summary: "Crawl of a host or some of its directories what seeds, filters and depth say",
    description:
      "Scope policy-write. What was found before and is left out now is not asked for again, until the channel is removed.",
    body: {
      schema: addChannelBody,
      example: {
        prefixes: ["https://www.example.org/docs/"],
        seeds: ["https://www.example.org/docs/"],
        include: ["/docs/*.html$"],
        exclude: ["/docs/old/"],
        maxDepth: 5,
      },
    },
    answers: {
      ...refusals,
      201: {
        description: "The answer",
        schema: channel,
        example: {
          channelId: 3,
          host: "www.example.org",
          directories: ["/docs/"],
          seeds: ["https://www.example.org/docs/"],
          include: ["/docs/*.html$"],
          exclude: ["/docs/old/"],
          maxDepth: 5,
          createdAt: "2026-03-01T12:00:00.000Z",
          expectedPages: 1240,
          settled: true,
        },
      },
      400: errorAnswer("The body is not as described"),
      429: errorAnswer("Too many failures from this address"),
      422: errorAnswer(
        "The settings contradict each other, or another channel of the host; each fault is named",
      ),
    },
  },
  removeChannel: {
    method: "post",
    path: "/api/channels/{number}/remove",
    needs: "policy-write",
    summary: "Crawl it as the scope says",
    description: "Scope policy-write. What the channel had left out is due again.",
    parameters: { path: { number: z.int().meta({ description: "As listed.", example: 3 }) } },
    body: { schema: z.strictObject({}), example: {} },
    answers: {
      ...refusals,
      200: {
        description: "The answer",
        schema: channel,
        example: {
          channelId: 3,
          host: "www.example.org",
          directories: ["/docs/"],
          seeds: ["https://www.example.org/docs/"],
          include: ["/docs/*.html$"],
          exclude: ["/docs/old/"],
          maxDepth: 5,
          createdAt: "2026-03-01T12:00:00.000Z",
          expectedPages: 1240,
          settled: true,
        },
      },
      400: errorAnswer("The body is not as described"),
      429: errorAnswer("Too many failures from this address"),
      404: errorAnswer("There is no channel of this number"),
    },
  },
} satisfies ApiOperations;
