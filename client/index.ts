import createClient, { type Client } from 'openapi-fetch';
import type { paths } from './schema.ts';

export type { components, operations, paths } from './schema.ts';

export type TandemClient = Client<paths>;

export interface TandemClientOptions {
  /** Address of the server, for example `http://127.0.0.1:8080`. */
  baseUrl: string;
  /** API key (`sk_...`) or session token. Omit it in a page that has a session cookie. */
  apiKey?: string;
  /** Workspace to act on. Required with a session; an API key implies its own. */
  workspaceId?: string | (() => string | null);
  /** Default: the global `fetch`. */
  fetch?: typeof fetch;
}

/**
 * Creates a client whose paths, parameters, bodies and responses are typed from `openapi.json`. Responses are
 * `{ data, error, response }`: `error` is set for a status of 400 or above.
 */
export function createTandemClient({ baseUrl, apiKey, workspaceId, fetch: send }: TandemClientOptions): TandemClient {
  const headers = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
  const named = typeof workspaceId === 'function' ? workspaceId : () => workspaceId ?? null;
  return createClient<paths>({
    baseUrl: baseUrl.replace(/\/$/, ''),
    headers,
    fetch: async (request) => {
      const url = new URL(request.url);
      const workspace = named();
      if (workspace !== null && !isPublic(url.pathname)) url.searchParams.set('workspace_id', workspace);
      return await (send ?? fetch)(url, await copyOf(request));
    },
  });
}

/** These operations act on no workspace and reject the parameter. */
function isPublic(pathname: string): boolean {
  return /^\/(?:auth|healthz|readyz|metrics|unsubscribe)(?:\/|$)/.test(pathname) && pathname !== '/auth/logout';
}

/** The body is read whole, because browsers do not send a stream again under another URL. */
async function copyOf(request: Request): Promise<RequestInit> {
  const { method, headers, credentials, signal } = request;
  // Firefox has no `Request.body`, and refuses any body of a GET request.
  const bytes = await request.arrayBuffer();
  return { method, headers, credentials, signal, ...(bytes.byteLength > 0 && { body: bytes }) };
}
