/**
 * A DNS server with one domain that has an MX record, one with an address only, one that accepts no mail, and the DNS64 prefix of
 * its network. It forwards other questions if another server is given.
 */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { type Answer, decode, encode } from "dns-packet";

const records: Readonly<Record<string, readonly Answer[]>> = {
  "mail.test-domain.org": [
    {
      type: "MX",
      name: "mail.test-domain.org",
      ttl: 60,
      data: { preference: 10, exchange: "mx.test-domain.org" },
    },
    { type: "A", name: "mail.test-domain.org", ttl: 60, data: "198.51.100.7" },
  ],
  "address.test-domain.org": [{ type: "A", name: "address.test-domain.org", ttl: 60, data: "198.51.100.8" }],
  "refuses.test-domain.org": [
    { type: "MX", name: "refuses.test-domain.org", ttl: 60, data: { preference: 0, exchange: "." } },
  ],
  "empty.test-domain.org": [],
  // As the DNS64 of a network whose NAT64 prefix is 2a00:db8:64::/96 answers (RFC 7050).
  "ipv4only.arpa": [{ type: "AAAA", name: "ipv4only.arpa", ttl: 60, data: "2a00:db8:64::c000:aa" }],
  localhost: [{ type: "A", name: "localhost", ttl: 60, data: "127.0.0.1" }],
};

export interface MailDns {
  /** `address:port` */
  readonly address: string;
  close(): Promise<void>;
}

/** `elsewhere`: as `address:port`. */
export async function startMailDns(elsewhere?: string): Promise<MailDns> {
  const socket = createSocket("udp4");
  socket.on("message", (message, { address, port }) => {
    const { id = 0, questions = [] } = decode(message);
    const [question] = questions;
    const known = records[question?.name ?? ""];
    if (known === undefined && elsewhere !== undefined) {
      const [otherAddress, otherPort] = elsewhere.split(":");
      const forwarded = createSocket("udp4");
      forwarded.once("message", (answer) => {
        socket.send(answer, port, address);
        forwarded.close();
      });
      forwarded.send(message, Number(otherPort), otherAddress);
      return;
    }
    const answers = known?.filter(({ type }) => type === question?.type) ?? [];
    const nameError = 3;
    const answer = {
      type: "response",
      id,
      flags: known === undefined ? nameError : 0,
      questions,
      answers,
    } as const;
    socket.send(encode({ ...answer, answers: [...answers] }), port, address);
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  return {
    address: `127.0.0.1:${(socket.address() as AddressInfo).port}`,
    close: async () => await new Promise((done) => socket.close(() => done())),
  };
}
