/** Fills a spool as fast as possible and reports each number; the test kills it. */
import { Spool } from "#crawler/spool/spool";
import { packResult } from "#protocol/packed/message-frames";

const spool = new Spool({ home: process.argv[2], maxBytes: 1e9 });

function write() {
  for (let burst = 0; burst < 20; burst++) process.send?.(appendOne());
  setImmediate(write);
}

function appendOne() {
  const number = (spool.last ?? 0) + 1;
  const result = {
    url: `https://site.example/${number}`,
    fetchedAt: "2026-11-21T10:00:00.000Z",
    outcome: { type: "failed", blame: "target", code: "tls", reason: "x".repeat(number % 300) },
    address: null,
    timing: { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null, totalMs: 1 },
    wireBytes: 0,
    bodyBytes: 0,
    etag: null,
    lastModified: null,
    hostDelayMs: 0,
    page: null,
  };
  return spool.append("7", packResult("7", result));
}

write();
