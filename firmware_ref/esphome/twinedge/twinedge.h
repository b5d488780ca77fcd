// A twinedge model as a component of ESPHome: sensors in, a prediction with its interval out.

#pragma once

#include "twin.h"
#include "esphome/components/binary_sensor/binary_sensor.h"
#include "esphome/components/sensor/sensor.h"
#include "esphome/core/component.h"
#include "esphome/core/preferences.h"
#ifdef USE_TEXT_SENSOR
#include "esphome/components/text_sensor/text_sensor.h"
#endif
#include <memory>
#include <vector>

namespace esphome::twinedge {

/// A column of the model: one feature, or those of a category.
class Source {
  public:
    virtual ~Source() = default;
    virtual bool has_state() const = 0;
    /// Write the features at x; false if it is a level that training did not see.
    virtual bool read(float *x) const = 0;
};

/// A level of a category, and the feature that stands for it.
struct Level {
    const char *text;
    uint16_t feature;
};

/// Keeps points over a restart, in numbered places.
class PointMemory {
  public:
    virtual ~PointMemory() = default;
    /// Copy the point of a place into x; its number, or 0 if there is none.
    virtual uint32_t load(uint16_t place, float *truth, float *x) = 0;
    virtual bool save(uint16_t place, uint32_t number, float truth, const float *x) = 0;
};

/// The same in preferences, each point by itself, so that a power cut costs at most the last.
template <size_t FEATURES> class PointPreferences final : public PointMemory {
  public:
    PointPreferences(uint32_t key, uint16_t places) {
        this->places_.reserve(places);
        for (uint16_t place = 0; place < places; place++)
            this->places_.push_back(global_preferences->make_preference<Point>(key + place, true));
    }
    uint32_t load(uint16_t place, float *truth, float *x) override {
        Point point{};
        if (!this->places_[place].load(&point))
            return 0;
        *truth = point.truth;
        std::copy(point.x, point.x + FEATURES, x);
        return point.number;
    }
    bool save(uint16_t place, uint32_t number, float truth, const float *x) override {
        Point point{number, truth, {}};
        std::copy(x, x + FEATURES, point.x);
        return this->places_[place].save(&point);
    }

  protected:
    struct Point {
        uint32_t number;
        float truth;
        float x[FEATURES];
    };
    std::vector<ESPPreferenceObject> places_;
};

/// Predicts when a source has a new state, at most once in each loop, and learns true values.
class TwinModel : public Component {
  public:
    TwinModel(const uint8_t *pack, uint32_t size) : pack_(pack), size_(size) {
    }

    void add_source(sensor::Sensor *source, uint16_t feature);
#ifdef USE_TEXT_SENSOR
    void add_source(text_sensor::TextSensor *source, uint16_t feature, uint16_t width,
                    const Level *levels, uint16_t count);
#endif
    void set_coverage(uint16_t thousandths) {
        this->coverage_ = thousandths;
    }
    /// Learn up to so many points, and keep them in preferences under this key and those after it.
    template <size_t FEATURES> void keep_points(uint16_t points, uint32_t key) {
        this->points_ = points;
        this->key_ = key;
        this->make_memory_ = [](uint32_t first, uint16_t places) -> PointMemory * {
            return new PointPreferences<FEATURES>(first, places);
        };
    }
    SUB_SENSOR(value)
    SUB_SENSOR(low)
    SUB_SENSOR(high)
    SUB_BINARY_SENSOR(outside)

    void setup() override;
    void loop() override;
    void dump_config() override;

    /// Learn that this is the true value for what was predicted last; false if that is refused.
    bool learn(float truth);
    /// Forget the point that was learnt last, or all.
    void forget(bool all);

  protected:
    struct Placed {
        std::unique_ptr<Source> source;
        uint16_t feature;
    };
    struct Kept {
        uint32_t number; // decides the place in the memory
        uint32_t stored; // number in the store
    };
    void watch_(Source *source, uint16_t feature);
    bool accepted_(twin_status status);
    bool open_store_();
    void recall_();
    twin_status forget_(std::vector<Kept>::iterator first, std::vector<Kept>::iterator last);
    void publish_(const twin_prediction &out, bool known);

    const uint8_t *pack_;
    uint32_t size_;
    twin_model model_{};
    std::vector<Placed> sources_;
    std::unique_ptr<float[]> x_;
    std::unique_ptr<uint8_t[]> scratch_;
    uint32_t scratch_size_{0};
    twin_status status_{TWIN_ERROR_MODEL}; // of the last prediction
    uint16_t coverage_{0};                 // in thousandths; 0 for that of the pack

    uint16_t points_{0}; // that it may learn
    uint32_t key_{0};
    PointMemory *(*make_memory_)(uint32_t, uint16_t){nullptr};
    std::unique_ptr<PointMemory> memory_;
    std::unique_ptr<uint8_t[]> blocks_; // storage of the store: RAM, filled from the memory
    std::unique_ptr<uint32_t[]> room_;
    twin_storage storage_{};
    twin_store store_{};
    std::vector<Kept> kept_; // the oldest first
    uint32_t next_{1};       // number of the next point
};

} // namespace esphome::twinedge
