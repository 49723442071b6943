import { createRootRoute, createRoute, createRouter, lazyRouteComponent, redirect } from '@tanstack/react-router';
import { LoadingState, NotFoundState } from '../parts/states.tsx';
import { requireServer } from './load.ts';
import { queryClient } from './query-client.ts';
import { RouteErrorState } from './route-error.tsx';
import { sessionQuery } from './session.ts';
import { Shell } from './shell.tsx';
import { parseSearch, stringsOf, writeSearch } from './url-search.ts';

const root = createRootRoute({ notFoundComponent: NotFoundState });

const login = createRoute({
  getParentRoute: () => root,
  path: '/login',
  validateSearch: stringsOf,
  component: lazyRouteComponent(() => import('./login.tsx'), 'LoginPage'),
});

const join = createRoute({
  getParentRoute: () => root,
  path: '/join',
  validateSearch: stringsOf,
  component: lazyRouteComponent(() => import('./join.tsx'), 'JoinPage'),
});

/** Pages that need a session. Without one, they redirect to the sign-in and back. */
const signedIn = createRoute({
  getParentRoute: () => root,
  id: 'signed-in',
  beforeLoad: async ({ location }) => {
    const session = await queryClient.ensureQueryData(sessionQuery);
    if (session === null) throw redirect({ to: '/login', search: { next: location.href } });
  },
  component: Shell,
});

/** The search of each page is a record of strings, which its `queries.ts` reads: `url-search.ts`. */
function page<const P extends string>(path: P, load: () => Promise<{ Page: () => React.ReactNode }>) {
  return createRoute({
    getParentRoute: () => signedIn,
    path,
    validateSearch: stringsOf,
    component: lazyRouteComponent(() => load().catch(askServer), 'Page'),
  });
}

/**
 * The router loads the console anew when the script of a page is missing, as after an update. While the server is
 * unreachable, here or for a proxy, that would end calls of the phone and show an error without the console.
 *
 * @throws ApiError
 */
async function askServer(error: unknown): Promise<never> {
  await requireServer();
  throw error;
}

const home = createRoute({
  getParentRoute: () => signedIn,
  path: '/',
  beforeLoad: () => {
    throw redirect({ to: '/live', replace: true });
  },
});

const pages = [
  home,
  page('/live', () => import('../live/page.tsx')),
  page('/calls', () => import('../calls/page.tsx')),
  page('/calls/$callId', () => import('../call/page.tsx')),
  page('/phone', () => import('../phone/page.tsx')),
  page('/numbers', () => import('../numbers/page.tsx')),
  page('/playground', () => import('../playground/page.tsx')),
  page('/developers', () => import('../developers/page.tsx')),
  page('/wallet', () => import('../wallet/page.tsx')),
  page('/people', () => import('../people/page.tsx')),
  page('/health', () => import('../health/page.tsx')),
  page('/account', () => import('../account/page.tsx')),
] as const;

export const router = createRouter({
  routeTree: root.addChildren([login, join, signedIn.addChildren(pages)]),
  basepath: '/console',
  parseSearch,
  stringifySearch: writeSearch,
  defaultPreload: 'intent',
  defaultPendingComponent: LoadingState,
  defaultErrorComponent: RouteErrorState,
  defaultNotFoundComponent: NotFoundState,
  scrollRestoration: true,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
