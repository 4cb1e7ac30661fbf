/** The version of coordinator and crawler. A test keeps it equal to package.json's. */
export const softwareVersion = "0.2.0";

/** The version in the User-Agent of requests to sites: `0.2`. */
export const userAgentVersion: string = softwareVersion.replace(/^(\d+\.\d+).*$/, "$1");
