/** Places a square around each tracker. `place`: from and to; `look`: time of the move, heading, state, flags. */
export const VERTEX = `#version 300 es
layout(location = 0) in vec4 place;
layout(location = 1) in vec4 look;
uniform mat4 matrix;
uniform vec2 pixel;
uniform float now, glide, bearing, size;
out vec2 spot;
flat out float state;
flat out float flags;
void main() {
  vec2 corner = vec2(float(gl_VertexID & 1), float(gl_VertexID >> 1)) * 2.0 - 1.0;
  vec2 at = mix(place.xy, place.zw, clamp((now - look.x) / glide, 0.0, 1.0));
  vec4 clip = matrix * vec4(at, 0.0, 1.0);
  state = look.z;
  flags = look.w;
  bool isSelected = mod(flags, 2.0) > 0.5;
  float angle = state < 0.5 && flags < 1.5 ? look.y - bearing : 0.0;
  float s = sin(angle), c = cos(angle);
  vec2 turned = vec2(corner.x * c + corner.y * s, corner.y * c - corner.x * s);
  clip.xy += turned * pixel * (isSelected ? size * 1.9 : size * 1.25) * clip.w;
  gl_Position = clip;
  spot = corner * (isSelected ? 1.9 : 1.25);
}`

/** Shapes show states besides colours: arrow, square, diamond with a hole, ring. */
export const FRAGMENT = `#version 300 es
precision highp float;
in vec2 spot;
flat in float state;
flat in float flags;
uniform vec3 colors[4];
uniform vec3 edge;
uniform vec3 selectedColor;
out vec4 color;
float arrow(vec2 p) {
  p.x = abs(p.x);
  float side = dot(p - vec2(0.0, 0.95), normalize(vec2(1.62, 0.62)));
  float notch = dot(p - vec2(0.0, -0.42), normalize(vec2(-0.45, -0.8)));
  return max(side, notch);
}
float box(vec2 p, float half_size) {
  vec2 d = abs(p) - half_size;
  return length(max(d, 0.0)) + min(max(d.x, d.y), 0.0);
}
void main() {
  float d;
  float hole = 1.0;
  if (state < 0.5) d = flags > 1.5 ? length(spot) - 0.72 : arrow(spot);
  else if (state < 1.5) d = box(spot, 0.56);
  else if (state < 2.5) { d = (abs(spot.x) + abs(spot.y) - 0.86) * 0.7071; hole = d + 0.34; }
  else { d = length(spot) - 0.66; hole = d + 0.3; }
  float soft = fwidth(d) + 0.0001;
  float inside = 1.0 - smoothstep(-soft, soft, d);
  float rim = 1.0 - smoothstep(-soft, soft, d - 0.17);
  vec3 fill = colors[int(state + 0.5)];
  vec3 shown = mix(edge, fill, inside);
  if (hole < 1.0) shown = mix(edge, shown, smoothstep(-soft, soft, hole));
  float alpha = rim;
  if (mod(flags, 2.0) > 0.5) {
    float ring = abs(length(spot) - 1.55) - 0.16;
    float halo = 1.0 - smoothstep(-soft, soft, ring);
    shown = mix(shown, selectedColor, halo * (1.0 - rim));
    alpha = max(alpha, halo);
  }
  if (alpha < 0.01) discard;
  color = vec4(shown * alpha, alpha);
}`
