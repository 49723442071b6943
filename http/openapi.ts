import type { FastifyDynamicSwaggerOptions } from '@fastify/swagger';
import type { FastifyContextConfig, FastifyInstance, FastifySchema } from 'fastify';
import { TANDEM_VERSION } from '../runtime/version.ts';
import { completeDocument } from './complete-document.ts';
import { withIdempotencyKey } from './idempotent-operations.ts';
import { OPENAPI_WEBHOOKS } from './openapi-webhooks.ts';
import { withHeaderTraits } from './response-headers.ts';
import { CallEventSchema, CallSchema } from './schemas/call.ts';
import { ErrorSchema, OpenaiErrorSchema } from './schemas/envelope.ts';
import { WorkspaceIdSchema } from './schemas/workspace.ts';
import { SESSION_COOKIE } from './session-cookie.ts';

/** Defines schemas that many operations reference once, in `components`. */
export function shareSchemas(app: FastifyInstance): void {
  app.addSchema({ ...ErrorSchema, $id: 'Error' });
  app.addSchema({ ...OpenaiErrorSchema, $id: 'OpenaiError' });
  app.addSchema({ ...CallSchema, $id: 'Call' });
  app.addSchema({ ...CallEventSchema, $id: 'CallEvent' });
}

/** The OpenAPI document without the operations, which come from the routes. Committed as `openapi.json`. */
export const OPENAPI_OPTIONS: FastifyDynamicSwaggerOptions = {
  openapi: {
    openapi: '3.1.0',
    info: {
      title: 'Tandem API',
      version: TANDEM_VERSION,
      description: [
        'Click-to-call over SIP with recordings and signed callbacks, speech-to-text, text-to-speech, voices, memory,',
        'chat completions, judge rubrics, billing and webhooks, on your own server.',
        '',
        'A successful response is `{success: true, data}`. An error is `{success: false, error, message, code, request_id}`:',
        'branch on `code`, which never changes, and show `message` to people.',
        'Each response lists the headers that it can have. Those of CORS, caching and compression are left out.',
        '',
        'The server checks a request in this order: credentials, rate limit, role and scope, body, parameters, and then the',
        'rules of the operation. Placing a call checks its fields in the order listed and reports the first invalid one.',
        '',
        'Operations and fields marked *Tandem extension* are additions to the base platform API.',
      ].join('\n'),
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/', description: 'The server that serves this document.' }],
    tags: [
      { name: 'click-to-call', description: 'Place, monitor and hang up calls, and play their recordings.' },
      { name: 'speech-to-text', description: 'Transcribe audio files and live audio.' },
      { name: 'speech', description: 'Convert text to speech.' },
      { name: 'voices', description: 'List voices, and clone new ones from audio samples.' },
      { name: 'chat', description: 'Generate chat completions, correct text, and manage saved chats.' },
      { name: 'memory', description: 'Store text and documents, and search them by meaning and by keyword.' },
      {
        name: 'judge',
        description: 'Manage rubrics, and evaluate texts and calls against them with a language model.',
      },
      { name: 'numbers', description: 'Rent and release phone numbers, and set the default caller ID.' },
      { name: 'trunks', description: 'Manage the SIP trunks that carry outbound calls.' },
      {
        name: 'calling rules',
        description: 'Limit calls by spend, prefix, rate and time of day, and manage the do-not-call list.',
      },
      { name: 'privacy', description: 'Delete calls, and erase the data about a phone number.' },
      { name: 'webhooks', description: 'Subscribe to events, and inspect and replay their deliveries.' },
      {
        name: 'billing',
        description: 'Wallet balance, payments, usage and prices. Workspace owners only, except for prices.',
      },
      { name: 'accounts', description: 'Register, log in, and save user preferences.' },
      { name: 'workspaces', description: 'Manage workspaces and their members, and read the audit log.' },
      { name: 'keys', description: 'Manage API keys.' },
      { name: 'platform', description: 'Check health, read metrics and list models.' },
    ],
    components: {
      securitySchemes: {
        apiKey: {
          type: 'http',
          scheme: 'bearer',
          description: 'An API key (`sk_...`). A key belongs to one workspace.',
        },
        session: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'JWT',
          description:
            'The token that POST /auth/login returns. Name the workspace in each request: `workspace_id` in the query or in the body.',
        },
        sessionCookie: {
          type: 'apiKey',
          in: 'cookie',
          name: SESSION_COOKIE,
          description:
            'The same token, in the cookie that POST /auth/login sets with `cookie: true`. Only for pages of this server: other origins get CROSS_ORIGIN_REQUEST. An Authorization header takes precedence.',
        },
      },
    },
    security: [{ apiKey: [] }, { session: [] }, { sessionCookie: [] }],
    webhooks: OPENAPI_WEBHOOKS,
  },
  hideUntagged: true,
  refResolver: { buildLocalReference: (json) => String(json.$id) },
  transformObject: (document) => completeDocument('openapiObject' in document ? document.openapiObject : {}),
  transform: ({ schema, url, route }) => {
    const documented = withIdempotencyKey(
      withRequirements(withDefaults(schema), route.config),
      route.config?.idempotent,
    );
    const withHeaders = withHeaderTraits(documented, route.config);
    return withWildcard({ schema: withCredentials(withHeaders, { url, ...route.config }), url });
  },
};

/** Adds the `workspace_id` parameter of sessions, and marks operations that reject API keys. */
function withCredentials(
  schema: FastifySchema,
  { url, access = 'public', credentials }: FastifyContextConfig & { url: string },
): FastifySchema {
  const ofSessions: Record<string, string[]>[] = [{ session: [] }, { sessionCookie: [] }];
  const security = credentials === 'session' ? { security: ofSessions } : {};
  if (access === 'public' || access === 'user' || url.startsWith('/workspaces/:id')) return { ...schema, ...security };
  const query = schema?.querystring as ObjectSchema | undefined;
  const querystring = {
    type: 'object',
    ...query,
    properties: { ...query?.properties, workspace_id: WorkspaceIdSchema },
  };
  return { ...schema, ...security, querystring };
}

/** Appends the required role and scope to an operation's description. */
function withRequirements(schema: FastifySchema, { access, scope }: FastifyContextConfig = {}): FastifySchema {
  const requirements = [
    ...(access === undefined || ROLES[access] === undefined ? [] : [`Requires ${ROLES[access]}.`]),
    ...(scope ? [`Requires scope \`${scope}\`.`] : []),
  ];
  if (requirements.length === 0 || schema?.hide) return schema;
  return { ...schema, description: [schema.description, requirements.join(' ')].filter(Boolean).join('\n\n') };
}

const ROLES: Partial<Record<NonNullable<FastifyContextConfig['access']>, string>> = {
  writer: 'any role except viewer',
  admin: 'the admin or owner role',
  owner: 'the owner role',
};

/** Marks query parameters with a default as optional. */
function withDefaults(schema: FastifySchema): FastifySchema {
  const query = schema?.querystring as ObjectSchema | undefined;
  if (query?.required === undefined) return schema;
  const required = query.required.filter((name) => query.properties?.[name]?.default === undefined);
  return { ...schema, querystring: { ...query, required } };
}

/** OpenAPI has no wildcard paths, so `*` becomes a parameter with its title as name. */
function withWildcard({ schema, url }: { schema: FastifySchema; url: string }): { schema: FastifySchema; url: string } {
  const { '*': wildcard, ...others } = (schema?.params as ObjectSchema | undefined)?.properties ?? {};
  if (wildcard === undefined) return { schema, url };
  const { title: name = '*', ...parameter } = wildcard;
  const params = { type: 'object', required: [name], properties: { ...others, [name]: parameter } };
  return { schema: { ...schema, params }, url: url.replace('*', `:${name}`) };
}

interface ObjectSchema {
  properties?: Record<string, { default?: unknown; title?: string }>;
  required?: string[];
}
