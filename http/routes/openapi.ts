import type { HttpApp } from '../context.ts';

export function openapiRoutes(app: HttpApp): void {
  app.get('/openapi.json', { config: { access: 'public' }, schema: { hide: true } }, async () => app.swagger());
}
