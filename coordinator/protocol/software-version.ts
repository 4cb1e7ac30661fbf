/** The version of this software, of coordinator and crawler alike; equal to package.json's (a test holds them together). */
export const softwareVersion = "0.2.0";

/** As the User-Agent of requests to sites has it: `0.2`. */
export const userAgentVersion: string = softwareVersion.replace(/^(\d+\.\d+).*$/, "$1");
