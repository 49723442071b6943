import type { FastifyInstance, FastifyRequest } from 'fastify';
import { TandemError } from '../machines/errors.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Another protocol defines the query. */
    anyQuery?: boolean;
  }
}

const MAX_NAMED = 20;

/**
 * Rejects unknown query parameters, so that a misspelled filter does not select everything. Runs after the credentials
 * are checked and before uploads are received.
 */
export function refuseUnknownParameters(app: FastifyInstance): void {
  const knownByRoute = new WeakMap<object, readonly string[]>();
  app.addHook('preValidation', async ({ query, routeOptions }) => {
    const { config, schema } = routeOptions;
    if (config.anyQuery || schema === undefined || (schema as { hide?: boolean }).hide) return;
    const known = knownByRoute.get(config) ?? parametersOf(routeOptions);
    knownByRoute.set(config, known);
    const unknown = Object.keys(query as object).filter((name) => !known.includes(name));
    if (unknown.length === 0) return;
    const names = unknown.slice(0, MAX_NAMED).map((name) => name.slice(0, 128));
    const accepted = known.length === 0 ? 'accepts no query parameters' : `accepts ${known.join(', ')}`;
    throw new TandemError(
      'VALIDATION_FAILED',
      `${names.join(', ')} is not a known query parameter. This operation ${accepted}.`,
      { details: names.map((path) => ({ path, message: 'is not a known query parameter' })) },
    );
  });
}

function parametersOf({ config, schema }: FastifyRequest['routeOptions']): string[] {
  const query = schema?.querystring as { properties?: object } | undefined;
  const named = Object.keys(query?.properties ?? {});
  // Sessions name their workspace in the query; keys may.
  const isPublic = (config.access ?? 'public') === 'public';
  return isPublic || named.includes('workspace_id') ? named : [...named, 'workspace_id'];
}
