/** A certificate that is renewed on the disk, at a server that goes on: real TLS, certificates by openssl. */
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { connect } from "node:tls";
import { expect, it, onTestFinished } from "vitest";
import { OwnCertificate } from "#coordinator/web/own-certificate";
import { pinOf } from "#protocol/identity";
import { temporaryFolder } from "../support/temporary-folder.ts";

const dayMs = 86_400_000;
const folder = temporaryFolder("nearcrawl-certificate-");
const certificateFile = join(folder, "cert.pem");
const keyFile = join(folder, "key.pem");

function makeKey(): void {
  execFileSync("openssl", ["genpkey", "-algorithm", "ed25519", "-out", keyFile], { stdio: "ignore" });
}

function makeCertificate(days: number): void {
  const subject = ["-subj", "/CN=coordinator", "-days", String(days)];
  execFileSync("openssl", ["req", "-x509", "-key", keyFile, "-out", certificateFile, ...subject], {
    stdio: "ignore",
  });
}

it("is served when it is renewed with the same key; one with another key only in the old one's last hour", async () => {
  makeKey();
  makeCertificate(10);
  const own = new OwnCertificate({ certificateFile, keyFile });
  const server = createServer(own.pair).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  own.serve(server);
  const shown = async () => {
    const { port } = server.address() as AddressInfo;
    const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false });
    await once(socket, "secureConnect");
    const { validTo } = socket.getPeerX509Certificate()!;
    socket.destroy();
    return { days: Math.round((Date.parse(validTo) - Date.now()) / dayMs) };
  };
  expect((await shown()).days).toBe(10);

  makeCertificate(90);
  expect(own.look(new Date())).toBe(true);
  expect((await shown()).days).toBe(90);
  expect(own.look(new Date())).toBe(false);

  const { pin } = own;
  makeKey();
  expect(own.look(new Date())).toBe(false);
  expect(own.facts().notTaken).toContain("key.pem is not its key");
  makeCertificate(80);
  expect(own.look(new Date())).toBe(false);
  expect(own.facts().notTaken).toBe("it is for another key, and crawlers have pinned the one before");
  expect([own.pin, (await shown()).days]).toEqual([pin, 90]);

  writeFileSync(certificateFile, "half a file");
  expect(own.look(new Date())).toBe(false);
  makeCertificate(80);
  expect(own.look(new Date(Date.now() + 90 * dayMs - 1_800_000))).toBe(true);
  expect([own.facts().notTaken, (await shown()).days]).toEqual([null, 80]);
  expect(pinOf(own.pair.cert)).not.toBe(pin);
});
