import type { RouteOptions } from 'fastify';

/**
 * Callers of a route. `public`: anyone, without credentials. `user`: any user, in any workspace. The others are roles
 * in the request's workspace: `member`: any role; `writer`: any except viewer; `admin`: admins and owners; `owner`:
 * owners.
 */
export type Access = 'public' | 'user' | 'member' | 'writer' | 'admin' | 'owner';

/** Accepted credentials. `session`: only session tokens. */
export type Credentials = 'any' | 'session';

/** Scopes of API keys. A key without scopes can do everything that its user's role allows. */
export const SCOPES = [
  'calls:read',
  'calls:write',
  'recordings:read',
  'recordings:write',
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
  'system:read',
  'privacy:manage',
  'user:write',
] as const;

export type Scope = (typeof SCOPES)[number];

export interface Permission {
  access: Access;
  credentials: Credentials;
  scope: Scope | null;
}

/**
 * Permissions of all routes, one row each. Routes repeat their `access` for readers. The server does not start if the
 * two differ or a row is missing.
 */
export const PERMISSIONS: Readonly<Record<string, Permission>> = {
  'GET /healthz': open(),
  'GET /readyz': open(),
  // http/metrics-access.ts checks the token or address.
  'GET /metrics': open(),

  'POST /auth/register': open(),
  'POST /auth/login': open(),
  'POST /auth/login-link': open(),
  'POST /auth/logout': sessionOnly('user'),
  'GET /auth/password/reset': open(),
  'POST /auth/password/reset': open(),
  'GET /user': allow('user', null),
  'PUT /user/password': sessionOnly('user'),
  'GET /user/sessions': sessionOnly('user'),
  'DELETE /user/sessions': sessionOnly('user'),
  'DELETE /user/sessions/:id': sessionOnly('user'),
  'POST /user/onboarding': allow('user', 'user:write'),
  'GET /unsubscribe': open(),
  'POST /unsubscribe': open(),

  'GET /workspaces': allow('user', null),
  'POST /workspaces': sessionOnly('user'),
  'GET /workspaces/:id/members': allow('admin', 'members:read'),
  'POST /workspaces/:id/members': allow('admin', 'members:write'),
  'PATCH /workspaces/:id/members/:user_id': allow('admin', 'members:write'),
  'DELETE /workspaces/:id/members/:user_id': allow('admin', 'members:write'),
  'GET /workspaces/:id/invitations': allow('admin', 'members:read'),
  'POST /workspaces/:id/invitations': allow('admin', 'members:write'),
  'DELETE /workspaces/:id/invitations/:invitation_id': allow('admin', 'members:write'),
  'POST /invitations/accept': sessionOnly('user'),
  'GET /developer/api': allow('member', 'keys:read'),
  'POST /developer/api': sessionOnly('writer'),
  'DELETE /developer/api/:id': allow('writer', 'keys:write'),
  'GET /system/health': allow('admin', 'system:read'),
  'GET /audit': allow('admin', 'audit:read'),

  'GET /dialer/stream': allow('member', 'calls:read'),
  'POST /dialer/stream-token': allow('member', 'calls:read'),
  'GET /dialer/statistics': allow('member', 'calls:read'),
  'GET /dialer/export.csv': allow('member', 'calls:read'),
  'POST /dialer/click2call': allow('writer', 'calls:write'),
  'GET /dialer/click2call': allow('member', 'calls:read'),
  'GET /dialer/click2call/:id': allow('member', 'calls:read'),
  'GET /dialer/click2call/:id/events': allow('member', 'calls:read'),
  'GET /dialer/click2call/:id/stream': allow('member', 'calls:read'),
  'POST /dialer/click2call/:id/stream-token': allow('member', 'calls:read'),
  'GET /dialer/click2call/:id/quality': allow('member', 'calls:read'),
  'GET /dialer/click2call/:id/deliveries': allow('member', 'calls:read'),
  'POST /dialer/click2call/:id/deliveries/:delivery_id/replay': allow('writer', 'calls:write'),
  'GET /dialer/click2call/:id/ledger': allow('owner', 'billing:manage'),
  'GET /dialer/click2call/:id/sip': allow('admin', 'calls:read'),
  'GET /dialer/click2call/:id/sip.pcapng': allow('admin', 'calls:read'),
  'DELETE /dialer/click2call/:id': allow('admin', 'privacy:manage'),
  'POST /dialer/click2call/:id/hangup': allow('writer', 'calls:write'),
  'POST /dialer/click2call/:id/mute': allow('writer', 'calls:write'),
  'POST /dialer/click2call/:id/unmute': allow('writer', 'calls:write'),
  'POST /dialer/click2call/:id/hold': allow('writer', 'calls:write'),
  'POST /dialer/click2call/:id/resume': allow('writer', 'calls:write'),
  'POST /dialer/click2call/:id/dtmf': allow('writer', 'calls:write'),
  'POST /dialer/click2call/:id/play': allow('writer', 'calls:write'),
  'DELETE /dialer/click2call/:id/play/:playback_id': allow('writer', 'calls:write'),
  'POST /dialer/click2call/:id/legs': allow('writer', 'calls:write'),
  'DELETE /dialer/click2call/:id/legs/:leg_id': allow('writer', 'calls:write'),
  'POST /dialer/click2call/:id/transfer': allow('writer', 'calls:write'),
  'POST /dialer/click2call/:id/transfer/complete': allow('writer', 'calls:write'),
  'DELETE /dialer/click2call/:id/transfer': allow('writer', 'calls:write'),
  'POST /dialer/click2call/:id/transfer/:transfer_id/complete': allow('writer', 'calls:write'),
  'POST /dialer/click2call/:id/transfer/:transfer_id/cancel': allow('writer', 'calls:write'),
  'POST /dialer/click2call/:id/supervise': allow('admin', 'calls:write'),
  'PATCH /dialer/click2call/:id/supervise/:supervision_id': allow('admin', 'calls:write'),
  'DELETE /dialer/click2call/:id/supervise/:supervision_id': allow('admin', 'calls:write'),
  // routes/phone.ts requires an admin for a supervisor's phone.
  'POST /phone/tokens': allow('writer', 'calls:write'),
  'GET /phone/colleagues': allow('writer', 'calls:read'),
  // http/websocket/phone-connection.ts checks the token.
  'GET /ws/phone': open(),
  'POST /dialer/click2call/:id/recording/pause': allow('writer', 'calls:write'),
  'POST /dialer/click2call/:id/recording/resume': allow('writer', 'calls:write'),
  'GET /dialer/click2call/:id/transcript': allow('member', 'recordings:read'),
  'POST /dialer/click2call/:id/recording': allow('member', 'recordings:read'),
  'POST /dialer/recordings/:id/playback-url': allow('member', 'recordings:read'),
  'GET /dialer/recording-settings': allow('member', 'recordings:read'),
  'PATCH /dialer/recording-settings': allow('admin', 'recordings:write'),
  'GET /media/*': open(),

  'GET /dialer/pool': allow('member', 'numbers:read'),
  'GET /dialer/numbers': allow('member', 'numbers:read'),
  'GET /dialer/numbers/available': allow('member', 'numbers:read'),
  'POST /dialer/numbers': allow('writer', 'numbers:write'),
  'DELETE /dialer/numbers/:e164': allow('writer', 'numbers:write'),
  'PUT /dialer/numbers/:e164/inbound': allow('writer', 'numbers:write'),
  'POST /dialer/numbers/verifications': allow('writer', 'numbers:write'),
  'GET /dialer/numbers/verifications/:id': allow('member', 'numbers:read'),
  'PUT /dialer/caller-id': allow('writer', 'numbers:write'),

  'GET /dialer/trunks': allow('admin', 'trunks:read'),
  'POST /dialer/trunks': allow('admin', 'trunks:write'),
  'GET /dialer/trunks/:id': allow('admin', 'trunks:read'),
  'PATCH /dialer/trunks/:id': allow('admin', 'trunks:write'),
  'POST /dialer/trunks/:id/probe': allow('admin', 'trunks:write'),
  'DELETE /dialer/trunks/:id': allow('admin', 'trunks:write'),

  'GET /dialer/calling-rules': allow('member', 'calls:read'),
  'PATCH /dialer/calling-rules': allow('admin', 'calls:write'),
  'GET /dialer/do-not-call': allow('member', 'calls:read'),
  'POST /dialer/do-not-call': allow('admin', 'calls:write'),
  'POST /dialer/do-not-call/check': allow('member', 'calls:read'),
  'DELETE /dialer/do-not-call/:e164': allow('admin', 'calls:write'),

  'POST /privacy/erasures': allow('admin', 'privacy:manage'),
  'GET /privacy/erasures/:id': allow('admin', 'privacy:manage'),

  'POST /stt': allow('writer', 'stt:write'),
  'POST /v1/transcribe': allow('writer', 'stt:write'),
  'POST /v1/audio/transcriptions': allow('writer', 'stt:write'),
  'GET /stt/languages': allow('member', null),
  // http/websocket/socket-admission.ts authenticates clients of both.
  'GET /ws/stt': open(),
  'GET /ws/tts': open(),

  'POST /tts-stream': allow('writer', 'tts:write'),
  'POST /v1/stream': allow('writer', 'tts:write'),
  'POST /tts-synthesize': allow('writer', 'tts:write'),
  'POST /v1/audio/speech': allow('writer', 'tts:write'),
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
  'GET /v1/models/*': allow('member', null),
  'POST /v1/chat/completions': allow('writer', 'chat:write'),
  'GET /chats': allow('member', 'chat:read'),
  'GET /chats/:id': allow('member', 'chat:read'),
  'DELETE /chats/:id': allow('writer', 'chat:write'),

  // actors/memory decides who may write to a collection (POLICY_DENY).
  'POST /memory/ingest': allow('member', 'memory:write'),
  'POST /memory/ingest/batch': allow('member', 'memory:write'),
  'POST /memory/documents/extract': allow('member', 'memory:write'),
  'POST /memory/search': allow('member', 'memory:read'),
  'POST /memory/context': allow('member', 'memory:read'),
  'POST /v1/embeddings': allow('member', 'memory:read'),
  'GET /memory': allow('member', 'memory:read'),
  'GET /memory/usage': allow('member', 'memory:read'),
  'GET /memory/collections': allow('member', 'memory:read'),
  'POST /memory/collections': allow('member', 'memory:write'),
  'DELETE /memory/collections/:id': allow('member', 'memory:write'),
  'GET /memory/:id': allow('member', 'memory:read'),
  'GET /memory/:id/status': allow('member', 'memory:read'),
  'PATCH /memory/:id': allow('member', 'memory:write'),
  'POST /memory/:id/retry': allow('member', 'memory:write'),
  'DELETE /memory/:id': allow('member', 'memory:write'),

  'GET /judge/models': allow('member', null),
  'POST /judge/evaluate': allow('writer', 'judge:write'),
  'GET /judge/evaluations': allow('member', 'judge:read'),
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

  'GET /billing/prices': allow('member', null),
  'GET /billing/wallet': allow('owner', 'billing:manage'),
  'GET /billing/transactions': allow('owner', 'billing:manage'),
  'GET /billing/usage-logs': allow('owner', 'billing:manage'),
  'GET /billing/usage-summary': allow('owner', 'billing:manage'),
  'GET /billing/export.csv': allow('owner', 'billing:manage'),
  'POST /billing/stripe/webhook': open(),
};

/** Adds the route's row of the table. @throws Error if the row is missing or its `access` differs */
export function applyPermission(route: RouteOptions): void {
  for (const routeMethod of [route.method].flat()) {
    if (routeMethod === 'OPTIONS') continue;
    // Fastify adds a HEAD route to each GET route, with the same options.
    const method = routeMethod === 'HEAD' ? 'GET' : routeMethod;
    const name = `${method} ${route.url}`;
    const permission = PERMISSIONS[name];
    const config = route.config ?? {};
    if (permission === undefined) {
      // The document and its pages are hidden and public.
      if (isHidden(route)) continue;
      throw new Error(`${name} has no permission: add a row to http/permissions.ts`);
    }
    if (config.access !== undefined && config.access !== permission.access) {
      throw new Error(`${name} declares access ${config.access}, but http/permissions.ts has ${permission.access}`);
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
