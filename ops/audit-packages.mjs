/**
 * Checks the lock file's packages for known vulnerabilities with `npm audit`. Exit code 0 means no finding of level high or
 * critical, or that no registry answered (which is printed). Exit code 1 means a finding.
 */
import { spawnSync } from "node:child_process";

const { stdout } = spawnSync("npm", ["audit", "--json"], { encoding: "utf8", timeout: 120_000 });
const told = parsed(stdout);

if (told?.vulnerabilities === undefined) {
  console.log(
    `the packages were not audited: ${told?.message ?? told?.error?.summary ?? "no registry answered"}`,
  );
} else {
  const grave = Object.values(told.vulnerabilities).filter(({ severity }) =>
    /^(high|critical)$/.test(severity),
  );
  for (const { name, severity, range, via } of grave) {
    const titles = via.flatMap((one) => (typeof one === "object" ? [`${one.title} (${one.url})`] : []));
    console.log(`${severity}: ${name} ${range}: ${titles.join("; ") || `through ${via.join(", ")}`}`);
  }
  const { total } = told.metadata.vulnerabilities;
  console.log(
    `the packages were audited: ${total} known vulnerabilities, ${grave.length} of them high or critical`,
  );
  process.exitCode = grave.length === 0 ? 0 : 1;
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
