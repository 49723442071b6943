import type { FastifyDynamicSwaggerOptions } from '@fastify/swagger';
import type { FastifyInstance } from 'fastify';
import { CallEventSchema, CallSchema } from './schemas/call.ts';
import { ErrorSchema } from './schemas/envelope.ts';

/** Schemas that many operations refer to stand in the document once. */
export function shareSchemas(app: FastifyInstance): void {
  app.addSchema({ ...ErrorSchema, $id: 'Error' });
  app.addSchema({ ...CallSchema, $id: 'Call' });
  app.addSchema({ ...CallEventSchema, $id: 'CallEvent' });
}

/** The frame of the OpenAPI document; operations come from the routes' schemas. Committed as `openapi.json`. */
export const OPENAPI_OPTIONS: FastifyDynamicSwaggerOptions = {
  openapi: {
    openapi: '3.1.0',
    info: {
      title: 'Tandem',
      version: '0.1.0',
      description: [
        'Self-hosted click-to-call over SIP, with recording and signed callbacks.',
        'Success is `{success: true, data}`, refusal is `{success: false, error, message, code, request_id}`.',
        'Every response carries `x-request-id` and the `X-RateLimit-*` headers.',
        'A request is judged in this order: credentials, rate limit, role, body, parameters, and then the operation;',
        'a placement looks at its fields in the order they are listed and refuses the first that is wrong.',
      ].join('\n'),
      license: { name: 'MIT', identifier: 'MIT' },
    },
    tags: [
      { name: 'click-to-call', description: 'Place, watch, end and replay calls.' },
      { name: 'numbers', description: 'The number pool, rented numbers and the caller ID.' },
      { name: 'trunks', description: 'SIP trunks that calls go out over.' },
      { name: 'platform', description: 'Health and this document.' },
    ],
    components: {
      securitySchemes: { apiKey: { type: 'http', scheme: 'bearer', description: 'An API key, `sk_...`.' } },
    },
    security: [{ apiKey: [] }],
  },
  hideUntagged: true,
  refResolver: { buildLocalReference: (json) => String(json.$id) },
  // A wildcard is not a parameter in OpenAPI.
  transform: ({ schema, url }) => {
    const { '*': key, ...rest } = (schema?.params as { properties?: Record<string, object> })?.properties ?? {};
    if (key === undefined) return { schema, url };
    const params = { type: 'object', required: ['key'], properties: { ...rest, key } };
    return { schema: { ...schema, params }, url: url.replace('*', ':key') };
  },
};
