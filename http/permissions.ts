import type { RouteOptions } from 'fastify';

/**
 * What a route asks of its caller. `public`: nothing, it looks at no credentials; `user`: to be somebody, in whichever
 * workspace; and in the workspace the request is for, `member`: any role; `writer`: one that may change something, so
 * all but viewers; `admin`: admins and owners; `owner`: owners.
 */
export type Access = 'public' | 'user' | 'member' | 'writer' | 'admin' | 'owner';

/** Which credentials a route takes: `session` is the token of somebody who logged in. */
export type Credentials = 'any' | 'session';

/** What a key can be limited to. A key without any may do whatever the role of its user allows. */
export const SCOPES = [
  'calls:read',
  'calls:write',
  'recordings:read',
  'numbers:read',
  'numbers:write',
  'trunks:read',
  'trunks:write',
  'billing:manage',
  'stt:write',
  'tts:write',
  'voices:write',
  'chat:read',
  'chat:write',
  'memory:read',
  'memory:write',
  'judge:read',
  'judge:write',
  'webhooks:read',
  'webhooks:write',
  'keys:read',
  'keys:write',
  'members:read',
  'members:write',
  'audit:read',
  'user:write',
] as const;

export type Scope = (typeof SCOPES)[number];

export interface Permission {
  access: Access;
  credentials: Credentials;
  /** Asked of keys that are limited; null where any key will do. */
  scope: Scope | null;
}

/**
 * Who may do what: every route of the API, one row each. A route says its own `access` too, for whoever reads it; the
 * server does not start when the two differ, nor with a route that has no row.
 */
export const PERMISSIONS: Readonly<Record<string, Permission>> = {
  'GET /healthz': open(),

  'POST /auth/register': open(),
  'POST /auth/login': open(),
  'POST /auth/logout': sessionOnly('user'),
  'POST /user/onboarding': allow('user', 'user:write'),
  'GET /unsubscribe': open(),
  'POST /unsubscribe': open(),

  'GET /workspaces': allow('user', null),
  'POST /workspaces': sessionOnly('user'),
  'GET /workspaces/:id/members': allow('admin', 'members:read'),
  'POST /workspaces/:id/members': allow('admin', 'members:write'),
  'PATCH /workspaces/:id/members/:user_id': allow('admin', 'members:write'),
  'DELETE /workspaces/:id/members/:user_id': allow('admin', 'members:write'),
  'GET /developer/api': allow('member', 'keys:read'),
  'POST /developer/api': sessionOnly('writer'),
  'DELETE /developer/api/:id': allow('writer', 'keys:write'),
  'GET /audit': allow('admin', 'audit:read'),

  'POST /dialer/click2call': allow('writer', 'calls:write'),
  'GET /dialer/click2call': allow('member', 'calls:read'),
  'GET /dialer/click2call/:id': allow('member', 'calls:read'),
  'GET /dialer/click2call/:id/events': allow('member', 'calls:read'),
  'GET /dialer/click2call/:id/stream': allow('member', 'calls:read'),
  'POST /dialer/click2call/:id/hangup': allow('writer', 'calls:write'),
  'GET /dialer/click2call/:id/transcript': allow('member', 'recordings:read'),
  'POST /dialer/click2call/:id/recording': allow('member', 'recordings:read'),
  'POST /dialer/recordings/:id/playback-url': allow('member', 'recordings:read'),
  'GET /media/*': open(),

  'GET /dialer/pool': allow('member', 'numbers:read'),
  'GET /dialer/numbers': allow('member', 'numbers:read'),
  'GET /dialer/numbers/available': allow('member', 'numbers:read'),
  'POST /dialer/numbers': allow('writer', 'numbers:write'),
  'DELETE /dialer/numbers/:e164': allow('writer', 'numbers:write'),
  'PUT /dialer/caller-id': allow('writer', 'numbers:write'),

  'GET /dialer/trunks': allow('admin', 'trunks:read'),
  'POST /dialer/trunks': allow('admin', 'trunks:write'),
  'GET /dialer/trunks/:id': allow('admin', 'trunks:read'),
  'PATCH /dialer/trunks/:id': allow('admin', 'trunks:write'),
  'DELETE /dialer/trunks/:id': allow('admin', 'trunks:write'),

  'POST /stt': allow('writer', 'stt:write'),
  'POST /v1/transcribe': allow('writer', 'stt:write'),
  'GET /stt/languages': allow('member', null),
  // The socket behind it judges who connects, see http/websocket/stt-admission.ts.
  'GET /ws/stt': open(),

  'POST /tts-stream': allow('writer', 'tts:write'),
  'POST /v1/stream': allow('writer', 'tts:write'),
  'POST /tts-synthesize': allow('writer', 'tts:write'),
  'GET /tts/languages': allow('member', null),

  'GET /voices': allow('member', null),
  'POST /voices': allow('writer', 'voices:write'),
  'GET /voices/:id': allow('member', null),
  'PUT /voices/:id': allow('writer', 'voices:write'),
  'DELETE /voices/:id': allow('writer', 'voices:write'),
  'POST /voices/professional': allow('writer', 'voices:write'),
  'POST /voices/professional/:id/samples': allow('writer', 'voices:write'),

  'GET /models': allow('member', null),
  'GET /v1/models': allow('member', null),
  'GET /v1/models/:id': allow('member', null),
  'POST /v1/chat/completions': allow('writer', 'chat:write'),
  'GET /chats': allow('member', 'chat:read'),
  'GET /chats/:id': allow('member', 'chat:read'),
  'DELETE /chats/:id': allow('writer', 'chat:write'),

  // Who may write into which collection is its own question, see actors/memory: refused with POLICY_DENY.
  'POST /memory/ingest': allow('member', 'memory:write'),
  'POST /memory/ingest/batch': allow('member', 'memory:write'),
  'POST /memory/documents/extract': allow('member', 'memory:write'),
  'POST /memory/search': allow('member', 'memory:read'),
  'POST /memory/context': allow('member', 'memory:read'),
  'GET /memory': allow('member', 'memory:read'),
  'GET /memory/usage': allow('member', 'memory:read'),
  'GET /memory/collections': allow('member', 'memory:read'),
  'POST /memory/collections': allow('member', 'memory:write'),
  'DELETE /memory/collections/:id': allow('member', 'memory:write'),
  'GET /memory/:id': allow('member', 'memory:read'),
  'GET /memory/:id/status': allow('member', 'memory:read'),
  'POST /memory/:id/retry': allow('member', 'memory:write'),
  'DELETE /memory/:id': allow('member', 'memory:write'),

  'GET /judge/models': allow('member', null),
  'POST /judge/evaluate': allow('writer', 'judge:write'),
  'GET /judge/evaluations/:id': allow('member', 'judge:read'),
  'GET /judge/rubrics': allow('member', 'judge:read'),
  'POST /judge/rubrics': allow('writer', 'judge:write'),
  'GET /judge/rubrics/:id': allow('member', 'judge:read'),
  'PATCH /judge/rubrics/:id': allow('writer', 'judge:write'),
  'DELETE /judge/rubrics/:id': allow('writer', 'judge:write'),
  'GET /judge/batches': allow('member', 'judge:read'),
  'POST /judge/batches': allow('writer', 'judge:write'),
  'GET /judge/batches/:id': allow('member', 'judge:read'),

  'GET /webhooks': allow('member', 'webhooks:read'),
  'POST /webhooks': allow('admin', 'webhooks:write'),
  'GET /webhooks/:id': allow('member', 'webhooks:read'),
  'PATCH /webhooks/:id': allow('admin', 'webhooks:write'),
  'DELETE /webhooks/:id': allow('admin', 'webhooks:write'),
  'GET /webhooks/:id/deliveries': allow('member', 'webhooks:read'),
  'POST /webhooks/:id/test': allow('admin', 'webhooks:write'),
  'POST /webhooks/:id/rotate-secret': allow('admin', 'webhooks:write'),
  'POST /webhooks/deliveries/:id/replay': allow('admin', 'webhooks:write'),

  'GET /billing/wallet': allow('owner', 'billing:manage'),
  'GET /billing/transactions': allow('owner', 'billing:manage'),
  'GET /billing/usage-logs': allow('owner', 'billing:manage'),
  'GET /billing/export.csv': allow('owner', 'billing:manage'),
  'POST /billing/stripe/webhook': open(),
};

/** Puts the row of the table onto the route. @throws Error on a route without a rule, or with two that differ. */
export function applyPermission(route: RouteOptions): void {
  for (const asked of [route.method].flat()) {
    if (asked === 'OPTIONS') continue;
    // The framework adds a HEAD to each GET and hands it the route as it was written.
    const method = asked === 'HEAD' ? 'GET' : asked;
    const name = `${method} ${route.url}`;
    const permission = PERMISSIONS[name];
    const config = route.config ?? {};
    if (permission === undefined) {
      // What the document does not show are the document itself and its pages.
      if (isHidden(route)) continue;
      throw new Error(`nobody says who may use ${name}: give it a row in http/permissions.ts`);
    }
    if (config.access !== undefined && config.access !== permission.access) {
      throw new Error(`${name} is for ${config.access} by itself and for ${permission.access} by http/permissions.ts`);
    }
    route.config = { ...config, ...permission };
  }
}

function isHidden({ schema }: RouteOptions): boolean {
  return (schema as { hide?: boolean } | undefined)?.hide === true;
}

function open(): Permission {
  return { access: 'public', credentials: 'any', scope: null };
}

function allow(access: Access, scope: Scope | null): Permission {
  return { access, credentials: 'any', scope };
}

function sessionOnly(access: Access): Permission {
  return { access, credentials: 'session', scope: null };
}
