/** The demo's view of the API: nothing but HTTP, as any integrator would. */
export interface Api {
  get<T>(path: string): Promise<T>;
  post<T>(path: string, body?: unknown): Promise<T>;
  /** The call's events as they happen, until the terminal one. */
  events(callId: string): AsyncGenerator<CallEvent>;
}

export interface CallEvent {
  sequence: number;
  event: string;
  state: string;
  leg: string | null;
  sip_status: number | null;
  hangup_cause: string | null;
  at: string;
  detail: string | null;
}

export function apiClient({ url, apiKey }: { url: string; apiKey: string }): Api {
  const authorization = `Bearer ${apiKey}`;

  async function ask<T>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await fetch(url + path, {
      method,
      headers: { authorization, ...(body !== undefined && { 'content-type': 'application/json' }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const answer = (await response.json()) as { success: boolean; data: T; message?: string; code?: string };
    if (!response.ok)
      throw new Error(`${method} ${path} answered ${response.status} ${answer.code}: ${answer.message}`);
    return answer.data;
  }

  return {
    get: (path) => ask('GET', path),
    post: (path, body) => ask('POST', path, body),
    async *events(callId) {
      const response = await fetch(`${url}/dialer/click2call/${callId}/stream`, { headers: { authorization } });
      if (!response.ok || !response.body) throw new Error(`the event stream answered ${response.status}`);
      let text = '';
      for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
        text += chunk;
        const blocks = text.split('\n\n');
        text = blocks.pop() ?? '';
        for (const block of blocks) {
          const data = block.split('\n').find((line) => line.startsWith('data:'));
          if (data) yield JSON.parse(data.slice(5)) as CallEvent;
        }
      }
    },
  };
}

/** The same request for a shell, to be repeated by hand. */
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
