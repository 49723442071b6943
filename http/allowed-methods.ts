import type { FastifyInstance } from 'fastify';

/** Collects all routes, so that a known path with another method returns 405 with `Allow` instead of 404. */
export function trackAllowedMethods(app: FastifyInstance): (url: string) => string[] {
  const routes: { pattern: RegExp; methods: readonly string[] }[] = [];
  app.addHook('onRoute', ({ url, method }) => {
    // The CORS route for OPTIONS matches every path.
    if (method === 'OPTIONS') return;
    routes.push({ pattern: patternOf(url), methods: [method].flat() });
  });
  return (url) => {
    const path = url.split('?', 1)[0]!;
    return [...new Set(routes.filter(({ pattern }) => pattern.test(path)).flatMap(({ methods }) => methods))];
  };
}

function patternOf(url: string): RegExp {
  const segments = url.split('/').map((segment) => {
    if (segment.startsWith(':')) return '[^/]+';
    return segment === '*' ? '.*' : segment.replace(/[.+?^${}()|[\]\\]/g, '\\$&');
  });
  return new RegExp(`^${segments.join('/')}$`);
}
