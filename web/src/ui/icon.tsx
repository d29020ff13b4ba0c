// Drawn for a square of 20; strokes of 1.5 in the colour of the text.
const PATHS = {
  today:
    "M10 2.5v2M10 15.5v2M2.5 10h2M15.5 10h2M4.70 4.70l1.40 1.40M13.90 13.90l1.40 1.40M4.70 15.30l1.40-1.40M13.90 6.10l1.40-1.40M13 10a3 3 0 1 1-6 0 3 3 0 0 1 6 0",
  memories: "M3 6.5 10 3l7 3.5L10 10zM3 10l7 3.5 7-3.5M3 13.5 10 17l7-3.5",
  review: "M4 10.5 8 14.5 16 5.5",
  sessions: "M3 4.5h14v9H9l-4 3v-3H3zM6.5 7.80h7M6.5 10.40h4.5",
  chats: "M3 4h10v7H8l-3 2.5V11H3zM15.5 7.5H17v7h-2V17l-3-2.5H9",
  projects: "M3 5h5l1.5 2H17v9H3z",
  profile: "M13 7a3 3 0 1 1-6 0 3 3 0 0 1 6 0M4 17c0-3.5 2.5-5 6-5s6 1.5 6 5",
  graph:
    "M6.5 6.5l7 1.5M6.20 7.20l2.60 6M14 9.5l-4 4.5M7 6a2 2 0 1 1-4 0 2 2 0 0 1 4 0M17 8a2 2 0 1 1-4 0 2 2 0 0 1 4 0M11.5 15a2 2 0 1 1-4 0 2 2 0 0 1 4 0",
  ask: "M10 3c.8 4.2 2.8 6.2 7 7-4.2.8-6.2 2.8-7 7-.8-4.2-2.8-6.2-7-7 4.2-.8 6.2-2.8 7-7",
  dreams: "M16.5 11.5A7 7 0 1 1 8.5 3.5a5.5 5.5 0 0 0 8 8",
  timeline: "M2 10h16M6 10a2 2 0 1 1-4 0 2 2 0 0 1 4 0M12 10a2 2 0 1 1-4 0 2 2 0 0 1 4 0M10 8V3h5M17 13v4h-6",
  settings: "M3 6h8M15 6h2M3 14h2M9 14h8M15 6a2 2 0 1 1-4 0 2 2 0 0 1 4 0M9 14a2 2 0 1 1-4 0 2 2 0 0 1 4 0",
  search: "M13.5 8.5a5 5 0 1 1-10 0 5 5 0 0 1 10 0M12.20 12.20 17 17",
  more: "M4 10h.01M10 10h.01M16 10h.01",
  link: "M8.5 11.5a3 3 0 0 0 4.30 0l2.70-2.70a3 3 0 0 0-4.30-4.30L10 5.70M11.5 8.5a3 3 0 0 0-4.30 0l-2.70 2.70a3 3 0 0 0 4.30 4.30L10 14.30",
  back: "M12 4l-6 6 6 6",
} as const;

export type IconName = keyof typeof PATHS;

/** A small picture next to a label, ignored by screen readers. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" width="18" height="18" viewBox="0 0 20 20" aria-hidden="true">
      <path
        d={PATHS[name]}
        fill="none"
        stroke="currentColor"
        stroke-width={name === "more" ? 2.6 : 1.5}
        stroke-linecap="round"
        stroke-linejoin="round"
      />
    </svg>
  );
}
