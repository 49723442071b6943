import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

/** `npm run console:dev` serves the console with hot reload and proxies everything else to this server. */
const SERVER = process.env.TANDEM_URL ?? 'http://127.0.0.1:8080';

export default defineConfig({
  root: import.meta.dirname,
  base: '/console/',
  plugins: [react()],
  build: {
    outDir: 'dist',
    // The console's policy allows data URLs only for images.
    assetsInlineLimit: 0,
    // A style sheet of a page that failed to load would not be loaded again, unlike its script.
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    // Browsers of 2024, so that `light-dark()` is not rewritten.
    target: 'es2024',
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    chunkSizeWarningLimit: 1000,
  },
  server: { proxy: { '^/(?!console/)': { target: SERVER, ws: true } } },
});
