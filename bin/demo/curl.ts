/** Formats a POST as a shell command. */
export function curlOf({
  url,
  apiKey,
  path,
  body,
}: {
  url: string;
  apiKey: string;
  path: string;
  body: unknown;
}): string {
  return [
    `curl -X POST ${url}${path} \\`,
    `  -H 'Authorization: Bearer ${apiKey}' -H 'Content-Type: application/json' \\`,
    `  -d '${JSON.stringify(body)}'`,
  ].join('\n');
}
