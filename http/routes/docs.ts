import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { HttpApp } from '../context.ts';

const require = createRequire(import.meta.url);

/**
 * Serves the OpenAPI document and its reference pages without a CDN. Uses only the static files of
 * `@fastify/swagger-ui`, read on first request, because its plugin adds 50 ms to the start and a file server. Links are
 * relative, so that a reverse proxy can mount the server below a path. Only styles are inline: see the policy in
 * `security-headers.ts`.
 */
export function docsRoutes(app: HttpApp): void {
  const hidden = { config: { access: 'public' }, schema: { hide: true } } as const;
  app.get('/openapi.json', hidden, async () => app.swagger());
  app.get('/docs', hidden, async (_request, reply) => reply.type('text/html; charset=utf-8').send(PAGE));
  app.get('/docs/', hidden, async (_request, reply) => reply.redirect('../docs'));
  app.get('/docs/start.js', hidden, async (_request, reply) => {
    return reply.type('text/javascript; charset=utf-8').send(START);
  });
  for (const [name, type] of Object.entries(FILES)) {
    let content: Promise<Buffer> | null = null;
    app.get(`/docs/${name}`, hidden, async (_request, reply) => {
      content ??= readFile(join(dirname(require.resolve('@fastify/swagger-ui')), 'static', name));
      // Megabytes that change only with a release.
      return reply.headers({ 'content-type': type, 'cache-control': 'public, max-age=3600' }).send(await content);
    });
  }
}

const FILES: Readonly<Record<string, string>> = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'favicon-32x32.png': 'image/png',
};

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Tandem API</title>
<link rel="icon" type="image/png" href="docs/favicon-32x32.png">
<link rel="stylesheet" href="docs/swagger-ui.css">
<style>
body { margin: 0; background: #fafafa; }
.swagger-ui .info { margin: 30px 0 10px; }
.swagger-ui .scheme-container { margin: 0 0 10px; padding: 10px 0; box-shadow: none; background: none; }
.swagger-ui .response-col_links { display: none; }
</style>
</head>
<body>
<div id="docs"><noscript>These pages need JavaScript; <a href="openapi.json">openapi.json</a> does not.</noscript></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
`;

const START = `SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#docs',
  deepLinking: true,
  filter: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  defaultModelRendering: 'example',
  displayRequestDuration: true,
  persistAuthorization: false,
  validatorUrl: null,
});
`;
