// What a gang did since it was first seen, as spans of time in seconds.

export function spansOf(course, until) {
  return course.steps
    .map(([does, at], number) => {
      const next = course.steps[number + 1];
      return { does, at, ends: next ? next[1] : course.ended || until };
    })
    .filter((span) => span.does !== "ended");
}
