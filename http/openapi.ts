import type { FastifyDynamicSwaggerOptions } from '@fastify/swagger';
import type { FastifyContextConfig, FastifyInstance, FastifySchema } from 'fastify';
import { Type } from 'typebox';
import { completeDocument } from './complete-document.ts';
import { OPENAPI_WEBHOOKS } from './openapi-webhooks.ts';
import { CallEventSchema, CallSchema } from './schemas/call.ts';
import { ErrorSchema, OpenaiErrorSchema } from './schemas/envelope.ts';

/** Schemas that many operations refer to stand in the document once. */
export function shareSchemas(app: FastifyInstance): void {
  app.addSchema({ ...ErrorSchema, $id: 'Error' });
  app.addSchema({ ...OpenaiErrorSchema, $id: 'OpenaiError' });
  app.addSchema({ ...CallSchema, $id: 'Call' });
  app.addSchema({ ...CallEventSchema, $id: 'CallEvent' });
}

/** The frame of the OpenAPI document; operations come from the routes' schemas. Committed as `openapi.json`. */
export const OPENAPI_OPTIONS: FastifyDynamicSwaggerOptions = {
  openapi: {
    openapi: '3.1.0',
    info: {
      title: 'Tandem API',
      version: '0.1.0',
      description: [
        'Self-hosted click-to-call over SIP, with recording and signed callbacks, transcription and synthesis of speech.',
        'Success is `{success: true, data}`, refusal is `{success: false, error, message, code, request_id}`.',
        'Every response carries `x-request-id` and the `X-RateLimit-*` headers.',
        'A request is judged in this order: credentials, rate limit, role, body, parameters, and then the operation;',
        'a placement looks at its fields in the order they are listed and refuses the first that is wrong.',
      ].join('\n'),
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/', description: 'The server this document came from.' }],
    tags: [
      { name: 'click-to-call', description: 'Place, watch, end and replay calls.' },
      { name: 'speech-to-text', description: 'Transcribe files, and talk as it happens.' },
      { name: 'speech', description: 'Have texts spoken.' },
      { name: 'voices', description: 'Choose a voice, or make one of samples of a speaker.' },
      { name: 'chat', description: 'Ask language models, have texts corrected, and look into chats.' },
      { name: 'memory', description: 'Remember texts and documents, and find what is known about a question.' },
      { name: 'judge', description: 'Rubrics, and what language models answer to them about texts and calls.' },
      { name: 'numbers', description: 'The number pool, rented numbers and the caller ID.' },
      { name: 'trunks', description: 'SIP trunks that calls go out over.' },
      { name: 'webhooks', description: 'Subscriptions to events, what was sent to them, and how it went.' },
      { name: 'billing', description: 'The wallet, what came into it and what was taken for what; for owners.' },
      { name: 'accounts', description: 'Registering, logging in, and what a user chose.' },
      { name: 'workspaces', description: 'Workspaces, their members, and the audit log.' },
      { name: 'keys', description: 'API keys.' },
      { name: 'platform', description: 'Health, models and this document.' },
    ],
    components: {
      securitySchemes: {
        apiKey: {
          type: 'http',
          scheme: 'bearer',
          description: 'An API key, `sk_...`, which is tied to its workspace.',
        },
        session: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'JWT',
          description: 'The token of a login. Each request names its workspace_id, in the query or in the body.',
        },
      },
    },
    security: [{ apiKey: [] }, { session: [] }],
    webhooks: OPENAPI_WEBHOOKS,
  },
  hideUntagged: true,
  refResolver: { buildLocalReference: (json) => String(json.$id) },
  transformObject: (document) => completeDocument('openapiObject' in document ? document.openapiObject : {}),
  transform: ({ schema, url, route }) => {
    return withWildcard({
      schema: withCredentials(withNeeds(withDefaults(schema), route.config), { url, ...route.config }),
      url,
    });
  },
};

/** A session names its workspace with each request; where a key will not do, the document says so. */
function withCredentials(
  schema: FastifySchema,
  { url, access = 'public', credentials }: FastifyContextConfig & { url: string },
): FastifySchema {
  const security = credentials === 'session' ? { security: [{ session: [] }] } : {};
  if (access === 'public' || access === 'user' || url.startsWith('/workspaces/:id')) return { ...schema, ...security };
  const query = schema?.querystring as ObjectSchema | undefined;
  const workspaceId = Type.String({ format: 'uuid', description: 'Of a session; keys are tied to theirs.' });
  const querystring = { type: 'object', ...query, properties: { ...query?.properties, workspace_id: workspaceId } };
  return { ...schema, ...security, querystring };
}

/** Who may, in words. */
function withNeeds(schema: FastifySchema, { access, scope }: FastifyContextConfig = {}): FastifySchema {
  const needs = [
    ...(access === undefined || ROLES[access] === undefined ? [] : [`For ${ROLES[access]}.`]),
    ...(scope ? [`A limited key needs \`${scope}\`.`] : []),
  ];
  if (needs.length === 0 || schema?.hide) return schema;
  return { ...schema, description: [schema.description, needs.join(' ')].filter(Boolean).join('\n\n') };
}

const ROLES: Partial<Record<NonNullable<FastifyContextConfig['access']>, string>> = {
  writer: 'all roles but viewers',
  admin: 'admins and owners',
  owner: 'owners',
};

/** What the server fills in is not required of the client. */
function withDefaults(schema: FastifySchema): FastifySchema {
  const query = schema?.querystring as ObjectSchema | undefined;
  if (query?.required === undefined) return schema;
  const required = query.required.filter((name) => query.properties?.[name]?.default === undefined);
  return { ...schema, querystring: { ...query, required } };
}

/** A wildcard is not a parameter in OpenAPI. */
function withWildcard({ schema, url }: { schema: FastifySchema; url: string }): { schema: FastifySchema; url: string } {
  const { '*': key, ...rest } = (schema?.params as ObjectSchema | undefined)?.properties ?? {};
  if (key === undefined) return { schema, url };
  const params = { type: 'object', required: ['key'], properties: { ...rest, key } };
  return { schema: { ...schema, params }, url: url.replace('*', ':key') };
}

interface ObjectSchema {
  properties?: Record<string, { default?: unknown }>;
  required?: string[];
}
