import { useComputed, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { useOperation } from "../api/cache";
import { connection, onEvent } from "../api/events";
import { me } from "../api/me";
import { language, speak } from "../i18n/index";
import { Segments } from "../ui/controls";
import { Dialog } from "../ui/dialog";
import { Icon } from "../ui/icon";
import { Toasts, toast } from "../ui/toast";
import { startKeys, useShortcuts } from "./keys";
import { Outlet, preload } from "./outlet";
import { addressOf, idle, navigation, type PageName, routeOf, titles } from "./pages";
import { Palette } from "./palette";
import { go, path } from "./router";
import { Shortcuts } from "./shortcuts";
import { t } from "./strings";
import { theme } from "./theme";
import "./shell.css";

type Window = "none" | "search" | "keys" | "more";

const COUNT_AFTER_MS = 700;
const ON_THE_BAR: readonly PageName[] = ["today", "memories", "review", "sessions"];

/** The frame of every page: navigation, search, keys and connection state. */
export function Shell() {
  const open = useSignal<Window>("none");
  const close = () => (open.value = "none");
  useEffect(startKeys, []);
  useEffect(() => onEvent(({ kind, text }) => kind === "notice" && toast(t.value.aProgram(String(text)))), []);
  useShortcuts(t.value.everywhere, [
    { keys: "/, ctrl+k", says: t.value.search, run: () => (open.value = "search") },
    { keys: "?", says: t.value.help, run: () => (open.value = "keys") },
  ]);
  useShortcuts(
    t.value.go,
    navigation.value.flat().map(({ page, key }) => ({
      keys: `g ${key}`,
      says: titles.value[page],
      run: () => go(addressOf(page)),
    })),
  );
  return (
    <div class="shell">
      <a class="skip" href="#content">
        {t.value.skip}
      </a>
      <Side onSearch={() => (open.value = "search")} />
      <div class="main">
        <Lost />
        {me.value && !me.value.owner && <p class="banner">{t.value.reader}</p>}
        <main id="content" tabIndex={-1}>
          <Outlet />
        </main>
      </div>
      <Bar onMore={() => (open.value = "more")} onSearch={() => (open.value = "search")} />
      {open.value === "search" && <Palette onClose={close} />}
      {open.value === "keys" && <Shortcuts onClose={close} />}
      {open.value === "more" && <More onClose={close} />}
      <Toasts />
    </div>
  );
}

function useCurrent(): PageName | undefined {
  return useComputed(() => routeOf(path.value)?.route.page).value;
}

/** Return the number of pending decisions by page. The page's own requests go first. */
function useWaiting(): Partial<Record<PageName, number>> {
  const isReady = useSignal(false);
  useEffect(() => {
    const timer = setTimeout(() => (isReady.value = true), COUNT_AFTER_MS);
    return () => clearTimeout(timer);
  }, []);
  const waiting = useOperation("review", { limit: 1 }, { off: !isReady.value }).data;
  return waiting ? { review: waiting.total } : {};
}

function Link(props: {
  page: PageName;
  icon: Parameters<typeof Icon>[0]["name"];
  waiting: number | undefined;
  onGo?: () => void;
}) {
  const { page, icon, waiting } = props;
  return (
    <a
      class="nav-link"
      href={addressOf(page)}
      aria-current={useCurrent() === page ? "page" : undefined}
      onPointerEnter={() => preload(page)}
      onClick={props.onGo}
    >
      <Icon name={icon} />
      <span>{titles.value[page]}</span>
      {waiting ? (
        <span class="nav-count" title={t.value.waiting(waiting)}>
          {waiting > 99 ? "99+" : waiting}
        </span>
      ) : null}
    </a>
  );
}

function Side({ onSearch }: { onSearch: () => void }) {
  return (
    <header class="side">
      <a class="brand" href="/">
        <span class="brand-pearl" aria-hidden="true" />
        nacre
      </a>
      <button type="button" class="side-search" onClick={onSearch}>
        <Icon name="search" />
        <span>{t.value.search}</span>
        <kbd aria-hidden="true">/</kbd>
      </button>
      <Pages />
      <Look />
    </header>
  );
}

function Pages({ onGo }: { onGo?: () => void }) {
  const waiting = useWaiting();
  const current = useCurrent();
  const list = (entries: typeof idle.value) => (
    <ul key={entries[0]?.page}>
      {entries.map(({ page, icon }) => (
        <li key={page}>
          <Link page={page} icon={icon} waiting={waiting[page]} {...(onGo ? { onGo } : {})} />
        </li>
      ))}
    </ul>
  );
  return (
    <nav class="nav" aria-label={t.value.navigation}>
      {navigation.value.map((group) => list(group.filter((entry) => !idle.value.includes(entry))))}
      {idle.value.length > 0 && (
        <details open={idle.value.some(({ page }) => page === current)}>
          <summary>{t.value.idle}</summary>
          {list(idle.value)}
        </details>
      )}
    </nav>
  );
}

/** Theme and language. */
export function Look() {
  const themes = t.value.themes;
  return (
    <div class="look">
      <Segments
        label={t.value.theme}
        value={theme.value}
        options={[
          ["system", themes.system],
          ["light", themes.light],
          ["dark", themes.dark],
        ]}
        onPick={(picked) => (theme.value = picked)}
      />
      <Segments
        label={t.value.language}
        value={language.value}
        options={[
          ["en", "English"],
          ["zh", "中文"],
        ]}
        onPick={speak}
      />
    </div>
  );
}

/** On phones: the main pages, and the others behind a button. */
function Bar({ onMore, onSearch }: { onMore: () => void; onSearch: () => void }) {
  const waiting = useWaiting();
  const links = navigation.value.flat().filter(({ page }) => ON_THE_BAR.includes(page));
  return (
    <nav class="bar" aria-label={t.value.navigation}>
      {links.map(({ page, icon }) => (
        <Link key={page} page={page} icon={icon} waiting={waiting[page]} />
      ))}
      <button type="button" class="nav-link" onClick={onSearch}>
        <Icon name="search" />
        <span>{t.value.search}</span>
      </button>
      <button type="button" class="nav-link" onClick={onMore}>
        <Icon name="more" />
        <span>{t.value.more}</span>
      </button>
    </nav>
  );
}

function More({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="nacre" place="side" onClose={onClose}>
      <Pages onGo={onClose} />
      <Look />
    </Dialog>
  );
}

function Lost() {
  if (connection.value !== "lost") return null;
  return (
    <p class="banner lost" role="alert">
      <b>{t.value.lost}</b> {t.value.lostHint}
    </p>
  );
}
